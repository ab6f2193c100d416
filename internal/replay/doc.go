// SPDX-License-Identifier: Apache-2.0

// Package replay owns the knowledge that all finite input of this process has
// been read.
//
// A collector runs until it is told to stop, but a replay of recorded traces is
// finished when its files are. A receiver of finite input registers when it is
// created and says so when all it read has been accepted downstream, or has
// failed; `lockstep run` waits for Done and then shuts its collector down, upon
// which the analyses flush. The full distribution never asks.
//
// Receivers register when created, not when started: the collector creates all
// components before it starts the first, so a receiver that ends at once cannot
// end the replay before another has begun.
//
// Three ways without state of the process were weighed. A receiver can report
// componentstatus.StatusFatalError, which stops the collector, but then every
// good replay ends with an error that must be told apart from a real one. A
// receiver can send its own process SIGTERM, but an embedding program (a test,
// another collector) then dies too, and it does not work everywhere. An
// extension that receivers look up is the collector's own way of sharing, but
// then each replay configuration has to name it, and one that forgets never
// ends.
package replay
