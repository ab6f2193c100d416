// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// Job is a way in which a job saves.
type Job struct {
	Name   string
	Format string // as internal/ckpt calls it
	World  int    // ranks that save
	// TellWorld: nothing in a save says how many ranks there are, so that a reader is told.
	TellWorld bool
	// InPlace: every save is made over the one before.
	InPlace bool
	// Unproven: nothing that a reader looks at proves a save of one epoch, so that it may
	// leave a finished one unconfirmed.
	Unproven bool
	// Digests: a finished save has the digest of each of its files, which a reader is to compare too.
	Digests bool
	// Blurs: what is left of two attempts at one epoch can be a mixture that nothing in it
	// tells from a save.
	Blurs Blur
	make  func(s *Save)
	dir   func(epoch int64) string
}

// Blur is what it takes to blur two attempts at one epoch.
type Blur uint8

// Blurs.
const (
	NeverBlurs Blur = iota
	CrashBlurs      // the machine crashed, and lost what was not synced
	KillBlurs       // a rank that waits for no other was killed
)

// Save returns a save of the job. Where old is not nil, it is deleted afterwards.
func (j *Job) Save(epoch int64, old *Save) *Save { return j.attempt(epoch, 0, old) }

func (j *Job) attempt(epoch, n int64, old *Save) *Save {
	s := newSave(epoch, j.dir(epoch), j.World)
	s.Attempt = n
	j.make(s)
	if old != nil && !j.InPlace {
		s.barrier()
		s.rank(0).retire(old)
		s.barrier()
	}
	return s
}

// retire deletes a save as shutil.rmtree does: folder by folder, in the order in which the
// file system lists them, which is none.
func (r rank) retire(old *Save) {
	names := slices.Concat(slices.Sorted(maps.Keys(old.Files)), slices.Sorted(maps.Keys(old.Side)))
	rng := rand.New(rand.NewPCG(uint64(old.Epoch), 1)) //nolint:gosec // a seed, no secret
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	dirs := map[string]bool{}
	for _, name := range names {
		r.remove(name)
		for dir := path.Dir(name); old.Dir != "." && strings.HasPrefix(dir, old.Dir); dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(dirs))) {
		r.remove(dir)
	}
}

// Jobs returns one job for each way of saving that is known.
func Jobs() []Job {
	return slices.Concat(dcpJobs(), megatronJobs(), deepspeedJobs(), hfJobs(), lightningJobs(), orbaxJobs())
}
