// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Analyzer applies KAIR to the steps of one job. It is not safe for concurrent use.
type Analyzer struct {
	cfg       Config
	names     *names
	name      func(key uint32) string
	open      *bounded.Map[int64, *gathered] // by step
	held      int                            // operations in these
	newest    int64                          // step that was closed
	closed    bool                           // one was
	rhythm    *Rhythm
	frequency *Frequency
	votes     votes
	stats     Stats
}

// gathered is a step that is not closed.
type gathered struct {
	workers map[int64]*Worker
	ops     int
}

func byStep(a, b *bounded.Pair[int64, *gathered]) int { return cmp.Compare(a.Key, b.Key) }

// New returns an analyzer.
func New(cfg Config) *Analyzer {
	a := NewNamed(cfg, nil)
	a.name = a.names.name
	return a
}

// NewNamed returns an analyzer for a caller that gathers steps, and whose keys have
// such names.
func NewNamed(cfg Config, name func(key uint32) string) *Analyzer {
	return &Analyzer{
		cfg: cfg, names: newNames(cfg.MaxKeys), name: name,
		open:      bounded.NewMap(bounded.MapConfig[int64, *gathered]{Compare: byStep}),
		rhythm:    NewRhythm(cfg.Windows, cfg.Span, cfg.Raw),
		frequency: NewFrequency(cfg.Windows, cfg.MaxShown, cfg.Span),
		votes:     votes{span: max(1, cfg.Span)},
	}
}

// Add takes operations of a rank. Their stamps are compared as they are: KAIR takes
// clocks to be right.
func (a *Analyzer) Add(rank model.Rank, ops []model.Op) {
	for i := range ops {
		op := &ops[i]
		kind, ok := KindOf(op.Kind)
		if !ok {
			continue
		}
		if w := a.worker(&rank, op); w != nil {
			w.Events = append(w.Events, Event{
				Start: op.Start, End: max(op.Start, op.End), Launch: op.Launch.Or(0), Lane: op.Lane(), Meet: MeetOf(&rank, op),
				Key: a.names.id(op.ComparisonKey(), &a.stats.KeysOverflowed), Seq: uint32(op.Seq), Kind: kind,
			})
			if op.Kind.IsComm() {
				w.Role += roleOf(string(op.Kind), op.Collective.Name, strconv.FormatInt(op.Comm.Size.Or(0), 10))
			}
		}
	}
	for a.open.Len() > max(1, a.cfg.MaxOpenSteps) || (a.held > a.cfg.MaxOpenOps && a.open.Len() > 1) {
		a.stats.StepsEvicted++
		oldest, _, _ := a.open.Oldest()
		a.Close(oldest)
	}
}

// worker returns whom the operation belongs to; nil where there is no room, or none
// any more.
func (a *Analyzer) worker(rank *model.Rank, op *model.Op) *Worker {
	if !op.Step.OK {
		a.stats.OpsWithoutStep++
		return nil
	}
	g, ok := a.open.Peek(op.Step.V)
	if !ok {
		if a.closed && op.Step.V <= a.newest {
			a.stats.LateOps++
			return nil
		}
		g = &gathered{workers: map[int64]*Worker{}}
		a.open.Set(op.Step.V, g)
	}
	w := g.workers[rank.Rank]
	if w == nil {
		if len(g.workers) >= a.cfg.MaxRanks {
			a.stats.OpsRefused++
			return nil
		}
		w = &Worker{Rank: rank.Rank}
		if pp := rank.Parallel.PP; pp.OK {
			w.Role = roleOf("stage", strconv.FormatInt(pp.V, 10))
		}
		g.workers[rank.Rank] = w
	}
	if g.ops >= a.cfg.MaxOps {
		a.stats.OpsDropped++
		return nil
	}
	g.ops++
	a.held++
	return w
}

// roleOf hashes one communication of a rank. Their sum tells programs apart, which takes
// hashes whose differences do not cancel, as those of FNV do for texts that differ in
// their last letter.
func roleOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, s := range parts {
		_, _ = h.Write(append([]byte(s), 0))
	}
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finalizer of SplitMix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Close analyses a step, of which nothing more is taken.
func (a *Analyzer) Close(number int64) {
	g, ok := a.open.Delete(number)
	if !ok {
		return
	}
	a.held -= g.ops
	if !a.closed || number > a.newest {
		a.newest, a.closed = number, true
	}
	workers := make([]Worker, 0, len(g.workers))
	for _, w := range g.workers {
		workers = append(workers, *w)
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.Rank, b.Rank) })
	a.Hear(number, workers)
}

// Hear analyses a step of workers that its caller has gathered, by rank; it sorts
// their events.
func (a *Analyzer) Hear(number int64, workers []Worker) {
	s := &step{cfg: &a.cfg, workers: workers}
	to, any := int64(0), false
	for i := range workers {
		workers[i].tidy()
		for k := range workers[i].Events {
			if ev := &workers[i].Events[k]; a.counts(ev.Kind) {
				if !any {
					s.from, to, any = ev.Start, ev.End, true
				}
				s.from, to = min(s.from, ev.Start), max(to, ev.End)
			}
		}
	}
	a.rhythm.Hear(a.count(s, NewGrid(a.cfg.Windows, s.from, to), to-s.from))
	a.votes.hear(number, s.blame(&a.stats))
}

// tidy sorts the events and drops those that were delivered twice.
func (w *Worker) tidy() {
	slices.SortFunc(w.Events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.End, b.End))
	})
	w.Events = slices.Compact(w.Events)
}

// counts reports whether events of the kind make the rhythm.
func (a *Analyzer) counts(k Kind) bool {
	return k == Compute || (!a.cfg.ComputeOnly && (k == Comm || k == Receive))
}

// count returns the rhythms of a step's workers, and adds it to the frequencies.
func (a *Analyzer) count(s *step, grid Grid, ns int64) []Cohort {
	a.frequency.Begin(ns)
	at := map[uint64]int{}
	var out []Cohort
	for i := range s.workers {
		w := &s.workers[i]
		a.frequency.Worker()
		role := s.role(w)
		c, known := at[role]
		if !known {
			c = len(out)
			at[role] = c
			out = append(out, Cohort{Role: role})
		}
		from := len(out[c].Counts)
		out[c].Ranks = append(out[c].Ranks, w.Rank)
		out[c].Counts = append(out[c].Counts, make([]uint32, grid.Windows)...)
		counts := out[c].Counts[from:]
		for k := range w.Events {
			if ev := &w.Events[k]; a.counts(ev.Kind) {
				window := grid.Window(ev.End)
				counts[window]++
				a.frequency.Add(ev.Key, window)
			}
		}
	}
	return out
}

// Accusations returns who was blamed in most of the recent steps, the most often first.
func (a *Analyzer) Accusations() []Accusation { return a.votes.accusations(&a.cfg, a.name) }

// Scores returns the recent abnormality score of each rank, the highest first: KAIR's
// order of suspects.
func (a *Analyzer) Scores() []Score { return a.rhythm.Scores() }

// Heatmap returns the rhythms of the latest step, in at most so many rows.
func (a *Analyzer) Heatmap(rows int) Heatmap { return a.rhythm.Heatmap(rows) }

// Frequency returns how often each operation occurred over the recent steps.
func (a *Analyzer) Frequency() FrequencyView { return a.frequency.View(a.name) }

// Stats returns what found no room.
func (a *Analyzer) Stats() Stats { return a.stats }
