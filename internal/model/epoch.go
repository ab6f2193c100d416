// SPDX-License-Identifier: Apache-2.0

package model

// DomainKind is what a persistence domain holds.
type DomainKind string

// Kinds of persistence domains.
const (
	DomainModel      DomainKind = "model"
	DomainOptimizer  DomainKind = "optimizer"
	DomainScheduler  DomainKind = "scheduler"
	DomainRNG        DomainKind = "rng"
	DomainDataLoader DomainKind = "dataloader"
	// DomainTracker is a pointer to the save that a resume takes.
	DomainTracker DomainKind = "tracker"
	// DomainCommit is a marker that is written when everything else has been.
	DomainCommit DomainKind = "commit"
	// DomainPart is all that one rank saves, where nothing says of which kinds that is.
	DomainPart DomainKind = "part"
	// DomainPlace is what one who looks at a save, or at the part of it that one node holds, says of
	// all that is in it: that there is nothing else, and that nothing else is wrong.
	DomainPlace DomainKind = "place"
)

// Domain is the smallest unit that one writer persists and can lose independently: a kind,
// and of whom and where within that, such as "rank 3".
type Domain struct {
	Kind DomainKind
	ID   string
}

// Confirmation is a domain that was heard to confirm.
type Confirmation struct {
	Domain Domain
	Time   int64 // Unix ns
}

// IsPart reports whether a domain of the kind holds something of the save: a place is where parts
// lie, a tracker points at the whole.
func (k DomainKind) IsPart() bool { return k != DomainPlace && k != DomainTracker }

// DomainState is how far a domain is with an epoch.
type DomainState string

// States of a domain. Only DomainCommitted confirms.
const (
	DomainTentative  DomainState = "tentative"  // begun, torn, or in doubt
	DomainReflecting DomainState = "reflecting" // whole, and its confirmation is under way
	DomainCommitted  DomainState = "committed"
	DomainAbsent     DomainState = "absent" // expected, and not there; or there no more
	// DomainWithdrawn takes back what the observer said of the domain: it is no part of this save.
	DomainWithdrawn DomainState = "withdrawn"
)

// EpochObservation is what one look at one domain of one save found.
type EpochObservation struct {
	Time       int64 // Unix ns of the look; for people, it decides nothing
	JobID      string
	Generation string // of the job's set of domains: another world size is another one
	// Save is the epoch that the save is of which the domain is a part: what its folder or its
	// tag says, and what a resume would ask for.
	Save   int64
	Domain Domain
	// Of is how many domains of this kind the save has in all; 0 where the observer sees only
	// its own.
	Of int64
	// Parts is, of a place, of how many parts of the save that are there its observer tells (places
	// and pointers are none); 0: not said.
	Parts int64
	// FirstWrite is, of a place, when the oldest file of the save there was modified last, in Unix ns of
	// its file system's clock; 0: not said. It decides nothing.
	FirstWrite int64
	// Blind: the look was not one at all that there is, so that what is not said of it means nothing.
	Blind bool
	// Epoch is what the domain itself holds; unknown where nothing says so. Of a domain that is
	// absent it is what the domain held: it was there, and was deleted.
	Epoch      Optional[int64]
	State      DomainState
	Witness    string // what Epoch was read from
	Confidence float64
	// Observer names who looks, Life which of its lives it is, the later the greater; 0: it has one.
	// Revision counts the looks of a life at changes: of two observations of one life the one with
	// the higher revision holds.
	Observer string
	Life     int64
	Revision int64
}
