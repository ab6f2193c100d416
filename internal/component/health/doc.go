// SPDX-License-Identifier: Apache-2.0

// Package health owns how a receiver reports that a directory which its configuration names is missing
// or cannot be read: what is checked, and what the collector's status says.
package health
