// SPDX-License-Identifier: Apache-2.0

// Package versionmap owns how versions of nodes, and what does not fit together in one, look as log
// events.
package versionmap
