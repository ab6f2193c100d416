// SPDX-License-Identifier: Apache-2.0

// Package report renders findings as text: in one sentence, which is the body of a log record and the
// text of an alert, and in a block for a terminal. It has the means of rendering for the reports of
// engines, which it does not know: styles, labels with texts, grids, and numbers with their units. It
// computes nothing that decides; every number comes from a finding or its evidence.
//
// Durations are rendered with three significant digits. Lines fit the width of the style, which
// is 80 to 120 columns.
package report
