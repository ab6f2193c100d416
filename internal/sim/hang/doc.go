// SPDX-License-Identifier: Apache-2.0

// Package hang simulates training jobs that stop for a known reason, and the Flight
// Recorder dumps that they leave. It executes the job: hosts enqueue in program order as far
// ahead as they may, devices run streams in order, an operation is over when who takes part
// has come, until nothing moves. What is wrong is put in at one rank and one instruction,
// and the truth is that and nothing else. The package knows nothing of who judges it.
package hang
