// SPDX-License-Identifier: Apache-2.0

// Package thread runs functions on one operating system thread of low priority, and measures the processor time that
// they take. The thread ends with its owner: the Go runtime does not use it for anything else.
package thread
