// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package torchtracereceiver reads the traces that the PyTorch profiler wrote,
// one file per rank, and emits the operations of each rank step by step. What
// the files mean is the knowledge of internal/kineto; this package owns which
// files are read and when, which rank a file may speak for, and the delivery.
package torchtracereceiver
