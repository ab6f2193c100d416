// SPDX-License-Identifier: Apache-2.0

// Package health owns how a receiver reports that a directory in its configuration is missing or cannot
// be read. It has the checks, and the text of the collector's status.
package health
