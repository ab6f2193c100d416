// SPDX-License-Identifier: Apache-2.0

// Command simulate measures the solution over all clocks of simulated clusters:
// every packet of every pair goes through the estimator of its pair, and the
// solver gets what comes out, window by window. Truth is exact.
package main
