// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Format is a way in which checkpoints are laid out and committed.
type Format string

// Formats.
const (
	FormatDCP            Format = "dcp" // PyTorch Distributed Checkpoint, whoever calls it
	FormatTorchtitan     Format = "torchtitan"
	FormatMegatronDist   Format = "megatron_dist" // Megatron's torch_dist
	FormatMegatronLegacy Format = "megatron_legacy"
	FormatDeepSpeed      Format = "deepspeed"
	FormatHFTrainer      Format = "hf_trainer"
	FormatNeMo           Format = "nemo"
	FormatLightning      Format = "lightning"
	FormatOrbax          Format = "orbax"
	FormatSafetensors    Format = "safetensors"
)

// Check is a rule that a save broke; docs/checkpoints.md says what each looks for.
type Check string

// Checks.
const (
	CheckTracker    Check = "C1"  // the tracker says nothing readable
	CheckShards     Check = "C2"  // shards are missing, or are of another world
	CheckWitness    Check = "C3"  // witnesses of epochs differ
	CheckSize       Check = "C4"  // a file is shorter than what it has to hold
	CheckOrder      Check = "C5"  // a shard is newer than the marker that commits it
	CheckTorn       Check = "C6"  // a file is torn: no end, a wrong checksum, a hole
	CheckUnfinished Check = "C7"  // a marker says that the save is not finished
	CheckLag        Check = "C8"  // the tracker does not name the newest whole save
	CheckNodes      Check = "C9"  // trackers of nodes differ
	CheckRetention  Check = "C10" // parts of a save were deleted that others still need
	// CheckInput is about what could not be read at all: hostile, unknown, refused, too large.
	CheckInput Check = "input"
)

// Severity says what a problem does to the save.
type Severity uint8

// Severities, in the order of what they weigh.
const (
	Suspect    Severity = iota // a hint: the save is not confirmed
	Unreadable                 // could not be looked at: not confirmed
	Partial                    // a domain is not there, or not whole
	Mixed                      // domains hold different epochs
)

// String names the severity as --json does.
func (s Severity) String() string {
	return [...]string{"suspect", "unreadable", "partial", "mixed"}[min(s, Mixed)]
}

// Problem is one thing that is wrong with a save.
type Problem struct {
	Check    Check
	Severity Severity
	File     string // slash-separated, relative to the root; "" where it is about no single file
	What     string // one clause for people: got, want
}

// Domain is what one persistence domain of a save holds. Only State and Epoch decide; a
// problem that makes a domain doubtful makes it model.DomainTentative.
type Domain struct {
	model.Domain
	State model.DomainState
	Epoch model.Optional[int64]
	// Own: the epoch was read from the domain's content, and not from where it lies.
	Own     bool
	Late    bool   // nothing but times puts it in doubt
	Witness string // what Epoch was read from: "iteration in iter_0001000/mp_rank_00/model_optim_rng.pt"
	File    string // one of its files, relative to the root; "" where it has none
}

// Save is one save as its files show it.
type Save struct {
	Format Format
	Path   string // folder or file, slash-separated, relative to the root; "." is the root itself
	// Epoch is what the save is called by: its folder, tag or file name, or its commit marker.
	// Unknown where none of them says so.
	Epoch    model.Optional[int64]
	Domains  []Domain // in a fixed order
	Problems []Problem
	// FirstWrite is the oldest modification time of the files that were read of it. It is a hint for
	// people, and decides nothing.
	FirstWrite time.Time
	// World is how many ranks wrote it; unknown where nothing in it says so.
	World model.Optional[int64]
	// WorldUnknown: the save has one domain per rank and nothing says how many ranks there
	// were, so that one that was lost would leave no trace.
	WorldUnknown bool
	// Unproven says why the save is not confirmed although all that is looked at is whole; ""
	// where nothing is missing for that.
	Unproven string
	// Misnamed says why Epoch, which its name has, is not the number that it says; "" where it is.
	Misnamed string
	// WeightsOnly says why a resume of training can not take the save although it is whole: it holds
	// the model and no optimizer. "" where it holds more, or nothing tells.
	WeightsOnly string
	// Export: the save is a model that was exported, and no save of a job; WeightsOnly is its nature.
	Export bool

	found
}

// Called is the epoch that a save is called by, or where nothing calls it, the only one that its
// contents say.
func (s *Save) Called() model.Optional[int64] {
	if s.Epoch.OK {
		return s.Epoch
	}
	return onlyOwn(s)
}

// Resume is the save that the framework's own loader would take if it were started now.
type Resume struct {
	Path  string // "" where it would find none
	Epoch model.Optional[int64]
	By    string // what it goes by: "latest_checkpointed_iteration.txt", "the highest checkpoint-N"
	// Lost says which file names no save of the folder: what was found, what is accepted. "" where one is named, or
	// where it goes by no file.
	Lost string
}

// Root is what a folder of checkpoints holds.
type Root struct {
	Saves    []Save // ascending by epoch, those without one first
	Resumes  []Resume
	Problems []Problem // of the folder itself
	// Families are ways of several frameworks to name saves that the folder has side by side; of
	// those one was read. Empty where there is one.
	Families []string
	// Empty: the folder could be read, and holds nothing of a known layout.
	Empty bool
	// Bare: the folder could be read, and has no file in it, but what a file system puts there itself.
	Bare bool
	// Below names folders in an Empty one that hold saves.
	Below []string
	// Unfinished is a file of a download from the Hugging Face hub that was not finished, in an Empty one; "" for none.
	Unfinished string
	Counts     Counts
}

// Counts tell what a reading cost and left out.
type Counts struct {
	Files, Folders int64 // looked at
	BytesRead      int64
	SavesLeftOut   int64 // beyond Limits.Saves
	EntriesLeftOut int64 // folders with more entries than Limits.Entries, counted once each
	ProblemsLost   int64 // beyond Limits.Problems
	TooLarge       int64 // files and parts of them that are larger than what is read of one
}
