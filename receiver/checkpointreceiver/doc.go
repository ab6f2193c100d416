// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package checkpointreceiver tells what the checkpoints of jobs hold. How a checkpoint is read is
// the knowledge of internal/ckpt, what is told of it over time that of internal/ckptwatch; this
// package owns which folders are looked at and when, and the delivery.
package checkpointreceiver
