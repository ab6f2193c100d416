// SPDX-License-Identifier: Apache-2.0

// Package flightrecorder owns the reading of PyTorch's Flight Recorder dumps: pickle or
// JSON, every published version, of NCCL, Gloo and other backends. A dump is decoded in
// one pass into compact entries; State makes of them what the analysis of hangs needs of
// a rank. Call stacks are decoded only when asked for. Cut or damaged dumps are read as
// far as they go, and say so. docs/format/flight-recorder.md describes what is understood.
package flightrecorder
