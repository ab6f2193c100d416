// SPDX-License-Identifier: Apache-2.0

// Package stats holds the order statistics, histograms, tails of distributions and half planes that
// more than one package needs, each under one name. It imports nothing of this project.
//
// # Medians and quantiles
//
// A function that takes sorted values takes them in ascending order and does not change them.
// Select and what is named after it take values in any order, change the order, and need time
// linear in their number. An empty slice gives the zero value. Values are not NaN. Units are
// those of the values.
//
// Of an even number of values there are four medians, with a and b the two in the middle:
//
//	MedianLow       a
//	MedianHigh      b
//	Median          (a+b)/2, for floating point
//	MedianMidpoint  a + (b-a)/2, rounded down; no overflow
//
// QuantileLow of 1/2 is MedianLow, and QuantileHigh of 1/2 is MedianHigh. No quantile
// interpolates: each is one of the values. Types are those of Hyndman and Fan, "Sample
// Quantiles in Statistical Packages", The American Statistician 50 (1996).
//
// # Histograms
//
// Histogram and Recorder count durations in the exponential buckets of OpenTelemetry at one
// scale, so that counts of both merge. Histogram holds any counts that were sent; Recorder is
// for a hot path. LogLinear counts whole nanoseconds, forgets slowly and gives quantiles.
package stats
