// SPDX-License-Identifier: Apache-2.0

// Package timeline holds what is known of all clocks and places their readings.
//
// Edges between clocks are solved by internal/clock/graph, which gives each clock
// an offset to the raw clock of a reference. This package adds what spans need:
//
//   - A scale. Time on a timeline is the reference's reading and a smooth function
//     of it that follows the median of the trusted real-time clocks, one of each host,
//     at no more than 500 ppm. One host whose NTP errs moves it within what the others
//     are apart; of an even number the lower median counts. A scale that too few clocks
//     set is set anew, under another name.
//   - Continuity. A new solution does not move what was already placed: from the
//     newest reading that was asked for, a clock's line bends towards the new model,
//     and the difference on the way is part of the bound. Of one clock, greater
//     readings are never placed earlier.
//   - History. Late readings are bounded by the model of their time. Before the last
//     bends of a scale that are kept, bounds have room for those that are not.
//   - Steps. Each step of a clock begins a segment; a reading that occurs in several
//     is placed between them, with a bound that covers all, unless one of them was a
//     minute ago or more. A raw clock that is stepped again and again is not trusted,
//     where at least three raw clocks tell that it was this one.
//   - Whose step it was. A scale goes on as most of the clocks on it do: where they all
//     jump alike, its reference was set, and stands elsewhere on it from then on. Raw
//     clocks decide: a time service can set all others together. What was known before is
//     bounded by as much more as they leave open. While the reference's own host tells
//     that it can have been set, nobody else is moved by as much.
//   - What is heard later counts. A window far behind the last one is late, until three
//     solutions in a row go on from it: then the clock was set back, or where the rest
//     agrees with it, what was known was of another time. Times that a scale gave to
//     readings of up to a minute later stay, as those are what is late then; where it
//     gives others to still later ones, their bounds have room for both.
//   - Prompt windows. A real-time clock that its host reads beside its raw clock stands
//     where that one does, which is an oscillator and known for seconds to come. What was
//     read together gives it a window at once, with the bound of the raw clock and some
//     hundred ns; solutions say whether both are to be believed.
//
// A step is known with the solution that has heard of it: until then readings are placed
// as if it had not been, and those after it move when it is known. What a host tells of
// both of its clocks shows at once that one of them was set, and not which: from then on
// the bounds of both are wider by as much, placements are marked as stepped, and nothing is
// found, until a solution has compared the host with others since, or for a minute.
// In the same way a bound after the last
// window holds for as long as the clock's frequency changes by no more than its growth
// allows: that of real-time clocks by what NTP slews.
//
// AddEdge, Counters and Place do not wait while a solution is made.
//
// Clocks that nothing joins stand on different timelines. What stands on a timeline
// is exact by definition: bounds are those of a clock against its reference.
package timeline
