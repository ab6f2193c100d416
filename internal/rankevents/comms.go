// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// commState is what is kept of one communicator of the ring.
type commState struct {
	comm     ring.Comm
	id       string
	fit      *gpuclock.Fit
	funcs    [256]*funcState // by the ring's code of the function's name
	allToAll *funcState      // of grouped messages
	recent   [recentStarts]started
	noted    uint
}

// funcState is one function on one communicator.
type funcState struct {
	name string // of the data model
	key  int    // among the rank's operation keys
	text string // of the key; empty where it is the name
}

// findWorld chooses the communicator that names the job's life: the first with
// as many ranks as the world, or the largest where nobody said how many those are.
// It stays until it has ended and another was made after that; what was handed on
// under no world communicator stays so.
func (r *Rank) findWorld() {
	w := &r.worldComm
	for i := range r.commsSeen {
		c := &r.commsSeen[i]
		if c.Hash == w.hash && c.Index == w.index {
			w.ended = c.Ended
		}
	}
	for i := range r.commsSeen {
		c := &r.commsSeen[i]
		full := r.header.WorldSize < 0 || c.Ranks == r.header.WorldSize
		newer := w.hash == 0 || (!r.ready && r.header.WorldSize < 0 && c.Ranks > w.size) ||
			(w.ended && !c.Ended && c.Index > w.index)
		if full && newer && c.Ranks > 0 && c.Hash != 0 {
			*w = worldComm{hash: c.Hash, index: c.Index, size: c.Ranks, ended: c.Ended}
			r.anchor.restart()
			if r.life != 0 {
				r.life = c.Hash
			}
			if r.header.WorldSize < 0 && !r.ready {
				r.world = c.Ranks
			}
			if r.header.Rank < 0 && r.global < 0 {
				r.global = int64(c.Rank)
			}
		}
	}
}

func (r *Rank) learn(c *ring.Comm) {
	r.growComms(int(c.Index))
	s := r.comms[c.Index]
	if s != nil && s.comm.Hash == c.Hash && s.comm.Created == c.Created {
		s.comm.Ended = c.Ended
		return
	}
	if s != nil { // no producer writes an entry again
		r.node.unlearn(&s.comm, r.global)
	}
	r.comms[c.Index] = &commState{comm: *c, id: hashText(c.Hash), fit: r.fit(c.GPU)}
	r.node.learn(c, r.world, r.global)
}

func (r *Rank) growComms(index int) {
	for len(r.comms) <= index {
		r.comms = append(r.comms, nil)
	}
}

// maxGPUs bounds the clocks of one rank; a process drives one, rarely some.
const maxGPUs = 64

func (r *Rank) fit(gpu uint32) *gpuclock.Fit {
	i := int(min(gpu, maxGPUs-1))
	for len(r.fits) <= i {
		r.fits = append(r.fits, nil)
	}
	if r.fits[i] == nil {
		r.fits[i] = &gpuclock.Fit{}
	}
	return r.fits[i]
}

// comm returns a communicator by its index. Those that found no room in the
// ring's table, and any that the table does not explain, are one.
func (r *Rank) comm(index uint16) *commState {
	if int(index) < len(r.comms) && r.comms[index] != nil {
		return r.comms[index]
	}
	return r.unseenComm(index)
}

// maxLooks bounds how often in one pass the table is read for communicators that
// were made since it began.
const maxLooks = 64

func (r *Rank) unseenComm(index uint16) *commState {
	if r.lookedAt != r.pass {
		r.lookedAt, r.looks = r.pass, 0
	}
	if index != 0 && r.looks < maxLooks {
		r.looks++
		r.commsSeen = r.src.Comms(r.commsSeen[:0])
		for i := range r.commsSeen {
			r.learn(&r.commsSeen[i])
		}
	}
	if int(index) < len(r.comms) && r.comms[index] != nil {
		return r.comms[index]
	}
	if r.nameless == nil {
		r.nameless = &commState{fit: r.fit(0), comm: ring.Comm{Ranks: ring.None, Rank: ring.None}}
	}
	return r.nameless
}

func (r *Rank) fn(c *commState, code uint8) *funcState {
	if f := c.funcs[code]; f != nil {
		return f
	}
	f := &funcState{name: functionName(r.src.String(uint16(code)))}
	f.key, f.text = r.keys.of(f.name, c.comm.Name)
	c.funcs[code] = f
	return f
}

func functionName(ncclName string) string {
	if name := model.NCCLFunction(ncclName); name != "" {
		return name
	}
	return "unknown"
}

// maxKeys bounds the operation keys of one rank; further ones share otherKey, as
// docs/format/summary.md says.
const (
	maxKeys  = 256
	otherKey = "(other)"
)

// keyTable numbers operation keys.
type keyTable struct {
	names      []string
	byName     map[string]int
	overflowed int64 // names that share otherKey, each time they are looked up
}

func (t *keyTable) init() { t.byName = map[string]int{} }

// of returns the key of a function on a named communicator, and its text where
// that is not the function's name.
func (t *keyTable) of(name, comm string) (int, string) {
	text := ""
	key := name
	if comm != "" {
		text = name + " " + comm
		key = text
	}
	return t.id(key), text
}

func (t *keyTable) id(key string) int { return t.idOf(key, maxKeys) }

// idOf returns the key where less than most are known, or this one is.
func (t *keyTable) idOf(key string, most int) int {
	if i, ok := t.byName[key]; ok {
		return i
	}
	if len(t.names) >= most {
		key = otherKey
		t.overflowed++
		if i, ok := t.byName[key]; ok {
			return i
		}
	}
	t.byName[key] = len(t.names)
	t.names = append(t.names, key)
	return len(t.names) - 1
}

func (r *Rank) gpuUUID() string {
	if r.worldComm.hash == 0 {
		return ""
	}
	return r.uuidOf(r.comm(r.worldComm.index).comm.GPU)
}

func (r *Rank) uuidOf(gpu uint32) string {
	if gpu == 0 {
		return ""
	}
	for pass := range 2 {
		for i := range r.gpus {
			if r.gpus[i].Index == gpu {
				return r.gpus[i].UUID
			}
		}
		if pass == 0 {
			r.gpus = r.src.GPUs(r.gpus[:0])
		}
	}
	return ""
}
