// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"hash/maphash"

	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// rhythm hears how the operations of a job's ranks go on. A nil one hears nothing.
type rhythm struct {
	keys       *interner
	divergence *kair.Rhythm
	frequency  *kair.Frequency
	cohorts    []kair.Cohort // of the step, their room used again
	places     map[role]int  // in cohorts
	forms      []uint32      // keys of communication, by form
	accuser    *kair.Analyzer
}

// beats are the windows of a step, and beatSpan the steps that are forgotten at a time.
const (
	beats       = 128
	beatSpan    = 16
	maxFrequent = 64 // operations in the view
	maxHeatmap  = 64 // its rows
)

func newRhythm(keys *interner, cfg *Config) *rhythm {
	r := &rhythm{keys: keys}
	if cfg.Method == evidence.MethodKAIR {
		rules := kair.Published()
		if cfg.KAIRPlus {
			rules = kair.Plus()
		}
		r.accuser = kair.NewNamed(rules, keys.name)
	}
	if cfg.Rhythm {
		r.divergence = kair.NewRhythm(beats, beatSpan, false)
		r.frequency = kair.NewFrequency(beats, maxFrequent, beatSpan)
		r.places = map[role]int{}
	}
	return r
}

// hearRhythm adds the step to the ranks' execution rhythm.
func (j *job) hearRhythm(rec *record, views []*rankView) {
	r := j.rhythm
	if r.divergence != nil {
		r.hear(rec, views, &j.e.stats)
	}
	if r.accuser != nil {
		before := r.accuser.Stats().WalksLeftOut
		r.accuser.Hear(rec.step, r.workers(views, &j.e.stats))
		j.e.stats.ConclusionsDropped += r.accuser.Stats().WalksLeftOut - before
	}
}

// hear counts operations by the window in which they ended. Ranks are compared by what
// they computed, with those of their role: communication waits for others, and stages
// run different programs.
func (r *rhythm) hear(rec *record, views []*rankView, stats *Stats) {
	grid := kair.NewGrid(beats, rec.start, rec.end)
	r.frequency.Begin(rec.end - rec.start)
	r.empty()
	for _, v := range views {
		r.frequency.Worker()
		r.compute(v, &grid)
		for i := range v.comms {
			op := &v.comms[i]
			r.frequency.Add(r.keyOf(op, stats), grid.Window(op.end+v.shift(op)))
		}
	}
	r.divergence.Hear(r.filled())
}

// compute counts what the rank's device computed and copied.
func (r *rhythm) compute(v *rankView, grid *kair.Grid) {
	shift := int64(v.offset.Value)
	var counts []uint32
	for i := range v.acts {
		a := &v.acts[i]
		switch a.kind {
		case actCompute:
			if counts == nil && !v.dark {
				counts = r.row(v)
			}
			w := grid.Window(a.end + shift)
			r.frequency.Add(r.keys.plain(a.key), w)
			if counts != nil {
				counts[w]++
			}
		case actCopy:
			r.frequency.Add(r.keys.plain(a.key), grid.Window(a.end+shift))
		}
	}
}

// empty forgets the cohorts of the step before, but keeps their room.
func (r *rhythm) empty() {
	clear(r.places)
	for i := range r.cohorts {
		c := &r.cohorts[i]
		c.Ranks, c.Counts = c.Ranks[:0], c.Counts[:0]
	}
}

// filled returns the cohorts of the step.
func (r *rhythm) filled() []kair.Cohort {
	r.cohorts = r.cohorts[:len(r.places)]
	return r.cohorts
}

// row returns room for the counts of a rank, among those of its role.
func (r *rhythm) row(v *rankView) []uint32 {
	at, known := r.places[v.role]
	if !known {
		at = len(r.places)
		r.places[v.role] = at
		if at == len(r.cohorts) {
			r.cohorts = append(r.cohorts, kair.Cohort{})
		}
		r.cohorts[at].Role = uint64(v.role)
	}
	c := &r.cohorts[at]
	c.Ranks = append(c.Ranks, v.rank.Rank)
	from := len(c.Counts)
	c.Counts = append(c.Counts, noBeats[:]...)
	return c.Counts[from:]
}

var noBeats [beats]uint32

// keyOf returns the key of a communication among those of all operations.
func (r *rhythm) keyOf(op *commOp, stats *Stats) uint32 {
	form := int(op.form.id)
	if form >= len(r.forms) {
		r.forms = append(r.forms, make([]uint32, form+1-len(r.forms))...)
	}
	if r.forms[form] == 0 {
		r.forms[form] = r.keys.id(op.form.key, 0, stats)
	}
	return r.forms[form]
}

// workers returns the step as KAIR takes it.
func (r *rhythm) workers(views []*rankView, stats *Stats) []kair.Worker {
	out := make([]kair.Worker, 0, len(views))
	for _, v := range views {
		w := kair.Worker{Rank: v.rank.Rank, Role: uint64(v.role), Events: make([]kair.Event, 0, len(v.acts)+len(v.comms))}
		shift := int64(v.offset.Value)
		for i := range v.acts {
			w.Events = append(w.Events, r.event(&v.acts[i], shift))
		}
		for i := range v.comms {
			op := &v.comms[i]
			shift := v.shift(op)
			kind, _ := kair.KindOf(op.form.kind)
			w.Events = append(w.Events, kair.Event{
				Start: op.start + shift, End: max(op.start, op.end) + shift, Launch: shifted(v.launchOf(op), shift), Lane: op.lane,
				Meet: v.meetOf(op), Key: r.keyOf(op, stats), Seq: uint32(op.seq), Kind: kind,
			})
		}
		out = append(out, w)
	}
	return out
}

func (r *rhythm) event(a *activity, shift int64) kair.Event {
	ev := kair.Event{
		Start: a.start + shift, End: a.end + shift, Launch: shifted(a.launch, shift), Lane: a.lane,
		Key: r.keys.plain(a.key), Seq: a.seq,
	}
	switch a.kind {
	case actCompute:
		ev.Kind = kair.Compute
	case actCopy:
		ev.Kind = kair.Copy
	default:
		ev.Kind = kair.Host
	}
	return ev
}

// shifted moves an instant, where it is known.
func shifted(at, shift int64) int64 {
	if at == 0 {
		return 0
	}
	return at + shift
}

// meetSeed makes equal hashes of equal rendezvous in one run of the program.
var meetSeed = maphash.MakeSeed()

// meetOf hashes what operations that met have in common, 0 for none.
func (v *rankView) meetOf(op *commOp) uint64 {
	key, ok := v.rendezvous(op)
	if !ok {
		return 0
	}
	return max(1, maphash.Comparable(meetSeed, struct {
		meetKey
		digest string
	}{key, op.form.digest}))
}

// reportStep adds the divergence of the step's ranks.
func (r *rhythm) reportStep(to *StepReport) {
	if r.divergence == nil {
		return
	}
	for i := range to.Ranks {
		if score, ok := r.divergence.Score(to.Ranks[i].Rank.Rank); ok {
			to.Ranks[i].Divergence = model.Some(score)
		}
	}
}

// report adds what was heard.
func (r *rhythm) report(to *JobReport) {
	if r.accuser != nil {
		to.Suspects = r.accuser.Scores()
	}
	if r.divergence == nil {
		return
	}
	to.Divergence = map[int64]float64{}
	for _, s := range r.divergence.Scores() {
		to.Divergence[s.Rank] = s.Score
	}
	to.Heatmap = r.divergence.Heatmap(maxHeatmap)
	to.Frequency = r.frequency.View(r.keys.name)
}
