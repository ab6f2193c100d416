// SPDX-License-Identifier: Apache-2.0

// Package report owns what a person reads: it renders the reports of the
// straggler engine as text for a terminal. It computes nothing that decides;
// every number comes from the engine's reports or from a finding's evidence.
//
// Durations are rendered with three significant digits, offsets with their
// sigma. Lines fit the width of the style, which is 80 to 120 columns.
package report
