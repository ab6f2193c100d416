// Package ks owns the exact Kolmogorov-Smirnov distance between the rhythms of
// workers: for each worker the cumulative share of its operations that were over by
// the end of each window. A worker's score is its mean distance from all others, as
// KAIR defines its abnormality.
//
// All pairs of 16,384 workers take minutes. The distance is a metric, though, so that
// the distances d from any one row, the pivot, bound every other:
//
//	|d(A) - d(B)| <= D(A,B) <= d(A) + d(B)
//
// and with them every score. TopK computes scores only where these bounds leave open
// who is among the first k, and gives up one of them as soon as it cannot be. What it
// returns equals what the pairs give: cells are integers, and so are all sums.
package ks
