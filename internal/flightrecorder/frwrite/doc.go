// SPDX-License-Identifier: Apache-2.0

// Package frwrite writes Flight Recorder dumps as PyTorch does: the pickle of
// torch::jit::Pickler, opcode for opcode, and its JSON twin, with the keys that each
// version of the format has. Tests and benchmarks use it; nothing that reads a dump does.
package frwrite
