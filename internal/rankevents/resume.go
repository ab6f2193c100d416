// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"encoding/hex"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// resumeState is what a rank has said that it loaded.
type resumeState struct {
	last model.Resume // of its incarnation; Number 0: it has said nothing
	raw  uint32       // the process's number of it
	base uint32       // the process's number of the last one before this incarnation
	due  bool         // it is new
	next uint64       // when it is told again, ns
}

// resumed takes what the process says that it has loaded. What is told later holds: the process may
// load again.
func (r *Rank) resumed(rec *ring.Record) {
	v, st := rec.Resume(), &r.loaded
	switch {
	case v.Step < 0 || v.Number == 0 || v.HasOptimizer && v.OptimizerStep < 0:
		r.stats.ResumesInvalid++
		return
	case v.At > r.now+future:
		r.stats.BadTimes++
		return
	case v.Number <= st.raw:
		return
	}
	of := r.Identity()
	if st.last.Number > 0 && st.last.Rank.Incarnation != of.Incarnation {
		st.base = st.raw
	}
	st.raw, st.due = v.Number, true
	st.last = model.Resume{
		Rank: of, Time: r.unix(v.At), Life: r.lifeOf(), Number: int64(v.Number - st.base), Step: v.Step,
		DataCursor: v.DataCursor, Replica: v.Replica,
	}
	if v.HasOptimizer {
		st.last.OptimizerStep = model.Some(v.OptimizerStep)
	}
	if v.HasRNG {
		st.last.RNGDigest = hex.EncodeToString(v.RNG[:])
	}
}

// lifeOf names the process, the same for whoever reads its ring.
func (r *Rank) lifeOf() string {
	h := &r.header
	return h.BootID + "/" + strconv.FormatUint(h.PID, 10) + "/" + strconv.FormatUint(h.Created, 10)
}

// tellResume hands on what the rank has loaded: once it is known, and again each ResumeInterval,
// since who compares may be new, and takes a rank that is silent for gone. In another incarnation,
// as after a restart within the process, it has not said anything yet.
func (r *Rank) tellResume() {
	st := &r.loaded
	again := r.node.cfg.ResumeInterval > 0 && r.now >= st.next
	if st.last.Number == 0 || !st.due && !again {
		return
	}
	of := r.Identity()
	if of.Incarnation != st.last.Rank.Incarnation {
		return
	}
	st.due, st.next = false, r.now+uint64(r.node.cfg.ResumeInterval)
	st.last.Rank = of // its GPU may have become known
	r.batch.Resumes = append(r.batch.Resumes, st.last)
}
