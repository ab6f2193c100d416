// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes of lockstep.epoch.observation, what one look at one persistence domain of one save
// found. The resource has the job.
const (
	EpochGeneration = "lockstep.epoch.generation"  // s, the job's set of domains; absent where nothing tells two apart
	EpochSave       = "lockstep.epoch.save"        // i, the epoch that the save is of
	EpochDomainKind = "lockstep.epoch.domain.kind" // s: model, optimizer, scheduler, rng, dataloader, tracker, commit, place
	EpochDomainID   = "lockstep.epoch.domain.id"   // s, of whom and where: "rank 3"
	EpochDomainOf   = "lockstep.epoch.domain.of"   // i, domains of the kind in the save; absent where the observer sees its own only
	EpochParts      = "lockstep.epoch.parts"       // i, of a place: parts of the save that are there, of which its observer tells
	EpochHeld       = "lockstep.epoch.held"        // i, the epoch that the domain itself holds; absent where nothing says it
	EpochState      = "lockstep.epoch.state"       // s: tentative, reflecting, committed, absent, withdrawn
	EpochWitness    = "lockstep.epoch.witness"     // s, what the epoch was read from
	EpochConfidence = "lockstep.epoch.confidence"  // d, 0 to 1
	EpochObserver   = "lockstep.epoch.observer"    // s, who looks
	EpochLife       = "lockstep.epoch.life"        // i, of the observer, the later the greater; absent where it has one
	EpochRevision   = "lockstep.epoch.revision"    // i, of that life's looks at changes
	EpochFirstWrite = "lockstep.epoch.first_write" // i, of a place: Unix ns, modification time of the oldest file there; a hint

	// Attributes of the span of a save, "checkpoint save".
	EpochDomains    = "lockstep.epoch.domains"     // i, of the save
	EpochLastDomain = "lockstep.epoch.last_domain" // s, that confirmed last, as far as was heard: "optimizer rank 3"
	EpochBegunBy    = "lockstep.epoch.begun_by"    // s: file (its oldest file's modification time), observation (when it was heard of first)
	EpochBlind      = "lockstep.epoch.blind"       // b, the look was not one at all that there is; absent where it was
)
