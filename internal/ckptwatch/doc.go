// SPDX-License-Identifier: Apache-2.0

// Package ckptwatch owns what is told of a folder of checkpoints over time: an observation for
// each persistence domain of each save when what it holds changes, and again on a heartbeat; that
// what was there is there no more; and that what looks worse for a moment, as network file systems
// do, is not believed until it is seen again. It reads with internal/ckpt, and knows no collector.
package ckptwatch
