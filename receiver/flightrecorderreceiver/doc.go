// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package flightrecorderreceiver gathers the dumps of PyTorch's Flight Recorder as they are
// written, asks for them where that is wanted, and emits the state of each rank, who is
// absent, what is open and what is over. Which dumps are of one incident is the knowledge of
// internal/frwatch, what they mean that of internal/flightrecorder; this package owns the
// lifecycle, the identity and the delivery.
package flightrecorderreceiver
