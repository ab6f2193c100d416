// SPDX-License-Identifier: Apache-2.0

// Package kineto owns the reading of PyTorch profiler (Kineto) traces: Chrome
// trace JSON, plain or gzip, one file per rank. It turns the kernels, copies,
// collectives, scopes and steps of a file into operations of the domain model.
//
// A file is read once, front to back, through a buffer of bounded size. Events
// that nothing needs are passed over without being decoded; those that are kept
// become structs of 64 bytes without pointers, and operations are made from
// them only when somebody iterates. docs/format/kineto.md describes which
// dialects are understood and what is assumed where a trace does not say.
package kineto
