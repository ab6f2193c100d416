// SPDX-License-Identifier: Apache-2.0

// Package evidence owns what decided a finding: one struct for each kind of finding. The JSON of
// a struct is the attribute lockstep.finding.evidence. It knows nothing of the rest of the project.
//
// Seconds are float64 and named so in the JSON; ranks are global ranks of the job.
package evidence
