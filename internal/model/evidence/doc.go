// SPDX-License-Identifier: Apache-2.0

// Package evidence owns what decided a finding: one struct for each form of it. Encode returns the
// JSON of the attribute lockstep.finding.evidence, as docs/format/evidence.md describes it, and As is
// its one reader. A finding that passes through keeps its evidence as a Text. The package knows nothing
// of the rest of the project.
package evidence
