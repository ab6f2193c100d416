// SPDX-License-Identifier: Apache-2.0

// Package rankevents owns what the records of one rank's event ring mean: it
// folds every operation into its step, makes operations of the domain of those
// that the level asks for, and says what is still open. It reads rings through
// Source (internal/ring) and knows nothing of pdata or of the collector.
//
// # Steps
//
// Where the program marks its steps, an operation belongs to the step that was
// current when the host enqueued it. Where it does not, boundaries are places in
// the sequence of the world communicator, the largest one: once the sequence of
// (function, bytes) there has repeated itself often enough, the function that is
// rarest in its period, n times, is the anchor, and the step of everything
// enqueued from its operation number seq on is seq / n. Numbers are NCCL's own,
// so that all ranks agree whenever they were first read. Until a period is known
// operations carry no step, and are counted.
//
// A step closes when a later one had begun, no operation of it was in flight, and
// the lanes were drained after that was noted: a record is written before its
// slot is freed, so that nothing of the step can come any more. What does not end
// is waited for until a deadline.
//
// # Restarts
//
// Position is how far a ring was read, and Resume lets another reader continue from there. A reader
// emits a step when the step closes. So the next reader reads the records of open steps again, from
// the beginning of the pass in which the first of them came. It replays the records that were read
// before: they fill open steps and count their operations, and the reader emits nothing. Then it
// reads new records. So numbers of operations, and with them span ids, are the same as without a restart.
//
// # Where the time goes
//
// Where CUPTI witnesses what the device ran, each instant of a step is what ran in it.
// Kernels are placed by the launch that their record tells of, among the beginnings
// of steps; they come late, so that a step waits until kernels of a later one have
// come, up to its deadline.
//
// Without, only the communication of a rank's step is seen. While some runs, the time is
// transfer: whom it waited for cannot be told from one rank. Before an operation
// starts on streams without communication, the device was idle until shortly
// after the operation's launch, and busy with work that nobody recorded from then
// on, since a launched kernel starts as soon as its stream gets to it.
package rankevents
