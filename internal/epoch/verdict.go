// SPDX-License-Identifier: Apache-2.0

package epoch

import "github.com/lockstep-otel/lockstep/internal/model"

// Verdict is what is known of one save.
type Verdict string

// Verdicts.
const (
	Unknown    Verdict = "unknown"    // nothing decides
	Converging Verdict = "converging" // some domains confirm, and others have not yet
	Converged  Verdict = "converged"  // every domain confirms one epoch
	MixedEpoch Verdict = "mixed"      // domains hold different epochs
	Revoked    Verdict = "revoked"    // every domain has confirmed it, and some have lost it since
)

// Judgement is a verdict with what decided it.
type Judgement struct {
	Verdict Verdict
	Epoch   model.Optional[int64] // of Converged and Revoked
	// Held counts the confirming domains by the epoch that they hold, ascending: of more than MaxNamed
	// epochs those that most domains hold.
	Held []Held
	// Missing are domains that do not confirm, in a fixed order, at most MaxNamed of them.
	Missing      []Doubt
	MissingCount int
	Domains      int // that are expected
}

// Held is an epoch and the domains that hold it.
type Held struct {
	Epoch   int64
	Count   int
	Domains []model.Domain // at most MaxNamed
}

// Doubt is a domain that does not confirm.
type Doubt struct {
	Domain model.Domain
	State  model.DomainState
}

// MaxNamed is how many domains a judgement names: as many as the ranks of a finding.
const MaxNamed = 64
