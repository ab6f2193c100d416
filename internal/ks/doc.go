// SPDX-License-Identifier: Apache-2.0

// Package ks owns the exact Kolmogorov-Smirnov distance between the rhythms of
// workers: for each worker the cumulative share of its operations that were over by
// the end of each window. A worker's score is its mean distance from all others, as
// KAIR defines its abnormality.
//
// All pairs of 16,384 workers take seconds to minutes. TopK computes scores only where
// bounds leave open who is among the first k, and gives up one of them as soon as it
// cannot be. From the cheapest bound to the closest:
//
//   - The distance is a metric, so that the distances d from any one row, the pivot, bound
//     every other: |d(A) - d(B)| <= D(A,B) <= d(A) + d(B). Pivots are the medians of up to
//     four clusters of workers.
//   - Where many workers can still be among the first, more pivots bound each row by what is
//     like it, if the rows have anything in common.
//   - Where many are left even so, the step is cut into spans: beyond an allowance, two rows
//     are no farther apart than the sum of what they can be apart in each (see span.go).
//     Summed over all others that is a function of single numbers of a row, which
//     histograms give for all rows at once. Which cut and allowance decide on most is tried
//     on few rows first.
//
// For N workers, T windows and eight pivots at most, pivots and spans take O(N T) time and
// memory, and each score up to N T more time. How many scores are needed is up to the
// rhythms: k where somebody stands out; tens where nobody does, whether rhythms drift, meet
// in each window, tie, or fall into clusters. No bound helps where scores are nearer to each
// other than the bounds are to the scores, as of thousands of workers that have a few
// operations each: then TopK takes the square of the distinct rows, and Leaders stops at a
// number of pairs that its caller sets.
//
// What TopK returns equals what the pairs give: cells are integers, and so are all sums.
package ks
