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
// Nothing else holds a correction back: not that it is small beside its own sigma, as
// an offset of ranks may be (internal/clock). There, clocks that agree are the rule,
// and each rank is set right once. Here the same clock stands in many traces, and the
// times of all of them are compared: a clock that is corrected now and not a moment
// later, because its sigma was wide or its offset near zero, would jump by what was
// withheld. So an estimate is applied from the first one on, with a sigma and a bound
// that say what it is worth, and what is better known later is met within a tenth of
// a second. In the first seconds two clocks that agreed by chance can be told apart
// by as much as the first messages err.
//
// What the clocks leave undecided the messages may decide: the stamps of one
// clock order what happened on it, and each relation orders two events of two
// clocks. From these [Order] makes vector times, and tells of two events whether
// a chain of them leads from one to the other.
package causality
