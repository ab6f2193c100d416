// SPDX-License-Identifier: Apache-2.0

// Command skew compares clock_skew with Jaeger's clock skew adjuster on the same
// spans, whose true times are known because they are made up here: how far from
// the truth each puts them, which asynchronous spans each moves wrongly, and what
// a span costs, beside the floor that writing the same attributes costs.
package main
