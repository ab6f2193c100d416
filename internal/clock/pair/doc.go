// SPDX-License-Identifier: Apache-2.0

// Package pair estimates the offset of two clocks, Dst's reading less Src's, from
// messages between them: what it can be, and what it probably is.
//
// # What is known
//
// A message that left Src when Src read a, and arrived at Dst when Dst read b, took
// some time: the offset at a is at most b-a (an upper sample). One the other way says
// that it is at least that (a lower sample). If the stamps are right, each sample is
// true for ever, at its own reading. Everything else is a matter of what the offset
// may do between samples:
//
//   - its slope, the relative frequency, is within MaxDrift;
//   - it wanders by Wander at most in any Window, in as many changes as it likes;
//   - beside that a clock may be stepped, or its frequency changed by any amount
//     within MaxDrift, but not twice within the evidence that one interval rests on,
//     unless both are changes of frequency and samples come between.
//
// # Bounds
//
// The envelopes of a window (Moon, Skelly and Towsley 1999; Zhang, Liu and Xia 2002)
// leave a zone that a line must pass. They bound the offset if it is a line. A change of
// frequency that is too small for the envelopes to cross bends it inside the zone, and
// one near the window's end bends it as much as it likes, since no sample has seen it
// yet. So a reading is bounded only when there is evidence on both of its sides, and
// each side by itself.
//
// Time is cut into short intervals. The samples within a reach before the interval
// allow a polygon of lines, in the plane of offset and drift; so do those within a
// reach after it. If a clock changed once at most from the first of these samples to
// the last, then at each reading of the interval the truth continues what was before
// or what comes after: if it changed earlier, all that comes after is one line; if
// later, all that was before; if in the interval, it follows the one until the change,
// and the other from there. So it lies in the union of both, whatever the change, and
// no detection is needed. Where one side contradicts itself the change is there; that side
// is then shortened until it does not, and both bound together, since another change may
// be nearer. Where both do, there was more than one change: nothing is said, nor of what
// is near it and rests on one side. Where both are sound and far
// apart, the change is in the interval: it is left out.
//
// Two clocks may change one soon after the other. If both change their frequency, one on
// each side of the interval, by so little that neither side contradicts itself, then the
// truth is a line of its own between both: one that satisfies the interval's nearest
// samples on either side, or on one side those and on the other, where the change is
// nearer than they are, what that side says of the interval's end. The union contains
// these lines as well. It makes bounds wider by some hundredths, since a line between
// samples is not led on from them.
//
// Wander widens a sample by what the tangent at the interval can be wrong by at its
// distance, so that remote samples say little, and the reach needs no tuning.
//
// One reach is six samples of each direction, at least 3/8 of a Window and at most a
// quarter of MaxFit: 0.75 s at 10 exchanges a second and more, 6 s at one. Estimates
// lag behind by as much. Two changes of frequency must have the nearest samples between
// them, two of each direction on either side of an interval and 3/64 of a Window at least:
// 0.25 s at 100 exchanges a second, 0.5 s at 10, 5 s at one; and a third one must be a
// reach away. A step and another change must be two reaches and an interval apart, 1.6 s
// and 13 s; where they are not, at least one of both sides is usually seen to contradict
// itself, as always where the step is larger than delays are; it need not be. DriftBound
// is for one change.
//
// # Estimates
//
// The line of an estimate is the middle of the widest strip between both envelopes. It
// is taken from the longest evidence around the interval, to MaxFit before it, that
// agrees with all shorter evidence within its noise (Lepski's rule), so that a quiet
// pair of one exchange a second is averaged over half a minute, and one whose
// frequency changed is not. No fit goes across a change that bounds are sure of. The
// noise is how far apart the lines are that rest on even and on odd cells of time, in
// the median: it is Sigma, unless the soonest of so few samples is worse known, or the
// strip is wider than usual, or estimates in a row differ by more where they meet, as
// they do where stamps are wrong for longer than a cell. The line goes by the stamps'
// centres: what they can be wrong by is for bounds. It knows nothing of what both halves and all windows share, the difference of
// the shortest delays of both directions above all, and is no bound.
//
// Intervals in a row are described by one line, with bounds for every reading of them,
// and by several where one line makes the bounds much wider.
//
// With Overlap they speak of some of what the one before spoke of, where exchanges are
// rare. What is bounded on one side alone is not told while the estimate before it goes on.
//
// What would come last and is vague, since no message came for a while, waits once for
// the next Close: the estimate before it goes on better.
//
// Until anything is settled, and while the newest samples contradict what was, by more
// than one wrong stamp explains, Close adds a provisional estimate of the latest
// exchanges. If these show a change it trusts no line, only MaxDrift between a sample
// and the readings around it.
//
// # What nothing in here can show
//
// A difference between the shortest delays of both directions shifts the estimate by
// its half, for ever, unseen; the bounds contain the truth, since they assume nothing of
// delays but that they are not negative. A stamp that lies by less than the shortest
// delays makes a bound too narrow, unseen; one that lies by more is contradicted by
// samples before and after it, and dropped. A change of frequency after the last
// sample is no part of any bound: Growth allows for Wander, and for what the drift was
// not known to.
package pair
