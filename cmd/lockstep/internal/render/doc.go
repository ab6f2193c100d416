// SPDX-License-Identifier: Apache-2.0

// Package render prints the reports of engines as text for a terminal: that of the straggler
// engine on each job, that on hangs, and whether a job may resume. It computes nothing that
// decides; every number comes from the reports or from a finding's evidence. Package report
// renders the findings in them.
//
// Offsets are rendered with their sigma.
package render
