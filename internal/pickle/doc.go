// SPDX-License-Identifier: Apache-2.0

// Package pickle owns the reading of Python's pickles as data: bounded and inert. It
// knows how every opcode of the protocols 2 to 5 is written, allows those that a policy
// names, and refuses the rest where they stand. Nothing is imported, called or
// constructed; a declared length reserves no memory; what is read lies in flat tables
// with limits. docs/format/flight-recorder.md has the table of opcodes.
package pickle
