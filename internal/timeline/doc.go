// Package timeline holds what is known of all clocks and places their readings.
//
// Edges between clocks are solved by internal/clock/graph, which gives each clock
// an offset to the raw clock of a reference. This package adds what spans need:
//
//   - A scale. Time on a timeline is the reference's reading and a smooth function
//     of it that follows the median of the trusted real-time clocks, one of each host,
//     at no more than 500 ppm. One host whose NTP errs moves nobody. A scale that too
//     few clocks set is set anew, under another name.
//   - Continuity. A new solution does not move what was already placed: from the
//     newest reading that was asked for, a clock's line bends towards the new model,
//     and the difference on the way is part of the bound. Of one clock, greater
//     readings are never placed earlier.
//   - History. Late readings are bounded by the model of their time.
//   - Steps. Each step of a real-time clock begins a segment; a reading that occurs
//     in several is placed between them, with a bound that covers all.
//
// A step is known with the solution after it: until then readings are placed as if it
// had not been, by up to a window, and those near it move when it is known. In the same
// way a bound after the last window holds for as long as the clock's frequency changes
// by no more than its growth allows: that of real-time clocks by what NTP slews.
//
// AddEdge, Counters and Place do not wait while a solution is made.
//
// Clocks that nothing joins stand on different timelines. What stands on a timeline
// is exact by definition: bounds are those of a clock against its reference.
package timeline
