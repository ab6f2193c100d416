// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package desyncconnector is the live face of internal/desync: it hands operation spans,
// states of ranks and operations that do not end to internal/desync/watch, and gives out what
// hangs as finding events and metrics. It computes nothing itself.
package desyncconnector
