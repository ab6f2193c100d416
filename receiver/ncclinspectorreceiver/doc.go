// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package ncclinspectorreceiver reads the logs of NVIDIA's NCCL Inspector while they
// are written, and emits the operations of each rank and metrics of them. What the
// lines mean is the knowledge of internal/inspector; this package owns which files
// are read and when, that each line is read once, and the delivery.
package ncclinspectorreceiver
