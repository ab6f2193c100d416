// SPDX-License-Identifier: Apache-2.0

// Package causality knows which times of a trace cannot be the other way round,
// and says of each that is, whether a clock, the program or nobody can be
// blamed for it.
//
// [Table] lists the relations that truly hold: "the From end of the first span
// happened before the To end of the second". Whoever moves spans must leave them
// right, and whoever knows no clock learns of it from them: each relation
// between two clocks is one message from one to the other, and so bounds the
// offset from one side.
//
// A relation is right or wrong on the stamps as they came (raw) and on the
// timeline (corrected), and on the timeline only to within a bound:
//
//	raw    corrected                          verdict
//	right  right                              none
//	wrong  right by the bound or more         artefact: the clocks' fault
//	any    right or wrong by less than it     undecided
//	wrong  wrong by more than the bound       violation: the program's
//	right  wrong by more than the bound       introduced: ours
//
// Ours must not happen. An [Engine] judges a batch before anything is moved, and
// does not apply the correction of two clocks to a trace where it would turn a
// relation of the trace from right to certainly wrong: there the stamps stay as
// they came, and the relation has been given to the timeline as evidence. What came
// in a batch before is judged by how it was given out, and the later spans give way:
// they stay as they came, or are moved like those that they belong to.
//
// Where spans on both sides of one were given out before, it may have no place at all:
// a program stamped late and a skew hid it, or a model is wrong, and nothing tells
// which. Then its bound becomes wide enough for either, and the relation undecided.
//
// Only spans whose clock nothing bounds leave no room for that. So a trace that has a span
// of a new clock on no timeline, or spans on two, ends as it began: those that come later
// are moved like the first, or stay as they were stamped. While clocks come to be known,
// at the start above all, nothing is moved at all, for ten seconds at most.
//
// Nothing else holds a correction back: not that it is small beside its own sigma, as
// an offset of ranks may be (internal/clock). There, clocks that agree are the rule,
// and each rank is set right once. Here the same clock stands in many traces, and the
// times of all of them are compared: a clock that is corrected now and not a moment
// later, because its sigma was wide or its offset near zero, would jump by what was
// withheld. Then an estimate is applied from the first one on, with a sigma and a bound
// that say what it is worth, and what is better known later is met within a tenth of
// a second. In the first seconds two clocks that agreed by chance can be told apart
// by as much as the first messages err.
//
// Nobody is accused of what a clock may have done, which is placed as if it had not been
// set until what shows it is solved. A relation that is certainly wrong is a violation
// at once where a message that went back after it took so little time that no offset
// makes both right, or where most of the next ones of its direction are right that a set
// clock would have made wrong. Else it is undecided, and those that follow it are, until
// the clocks had the time to be known anew: eight windows of evidence.
//
// What the clocks leave undecided the messages may decide: the stamps of one
// clock order what happened on it, and each relation orders two events of two
// clocks. From these [Order] makes vector times, and tells of two events whether
// a chain of them leads from one to the other.
package causality
