// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memory is a store that survives its ledger.
type memory struct {
	values map[string][]byte
	fails  bool
}

func newMemory() *memory { return &memory{values: map[string][]byte{}} }

func (m *memory) Apply(changes []Change) error {
	if m.fails {
		return errors.New("no space")
	}
	for _, c := range changes {
		if m.values[c.Key] = c.Value; c.Value == nil {
			delete(m.values, c.Key)
		}
	}
	return nil
}

func (m *memory) Load(key string) ([]byte, error) { return m.values[key], nil }

var (
	start  = time.Unix(1_700_000_000, 0)
	limits = Config{
		Wait: time.Minute, StepLimit: time.Hour, StreamLimit: 24 * time.Hour,
		MaxStreams: 16, MaxJobs: 4, MaxOpen: 1024, MaxRanges: 256,
	}
)

func of(step int64) Step { return Step{"job", "inc", step} }

// request is what an agent sends at once: numbers of some spans.
type request struct {
	source  string
	numbers map[int64][]int64 // by step
	loose   []int64
	tried   bool
}

func (r *request) arrival() []Arrival {
	set := func(numbers []int64) Ranges {
		var all []Range
		for _, n := range numbers {
			all = append(all, Range{n, n})
		}
		return Of(all)
	}
	a := Arrival{Source: r.source, Steps: map[Step]Ranges{}, Loose: set(r.loose)}
	for step, numbers := range r.numbers {
		a.Steps[of(step)] = set(numbers)
	}
	return []Arrival{a}
}

type spanID struct {
	source string
	number int64
}

// world is some agents, a gateway with an analysis that is killed at any moment, and what reached those who read its
// conclusions.
type world struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	store  *memory
	ledger *Ledger
	queues map[string][]*request // what agents have not sent, or got no answer to
	open   map[int64]map[spanID]bool
	closed map[int64]bool // in this life
	// What happened, as only the test knows it.
	stepOf  map[spanID]int64
	loose   map[spanID]bool
	dropped map[spanID]bool
	noted   map[spanID]bool // the gateway has stored that it arrived
	done    map[int64]bool  // the gateway has stored that it was concluded, or may have been
	unsure  map[int64]bool  // of these, those that may have been
	fates   map[spanID]fate
	// uncertain counts spans that were noted, before or after it, of steps whose conclusion a kill interrupted.
	uncertain int64
	kills     int
}

// fate is what became of an operation of a step that was not dropped.
type fate string

const (
	published fate = "published" // in the conclusion of its step
	late      fate = "late"      // it came after that
	missing   fate = "missing"   // it was noted in an earlier life, and not there when its step was concluded
	uncertain fate = "uncertain" // it was noted, and a kill interrupted the conclusion of its step
)

const worldSteps, worldAgents = 40, 3

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), now: start, store: newMemory(), queues: map[string][]*request{},
		stepOf: map[spanID]int64{}, loose: map[spanID]bool{}, dropped: map[spanID]bool{}, noted: map[spanID]bool{}, done: map[int64]bool{},
		unsure: map[int64]bool{},
		fates:  map[spanID]fate{},
	}
	for _, source := range []string{"a", "b", "c"} {
		next := int64(0)
		for step := range int64(worldSteps) {
			for range 1 + w.random.IntN(3) {
				r := &request{source: source, numbers: map[int64][]int64{}}
				for range 1 + w.random.IntN(6) {
					id := spanID{source, next}
					if w.random.IntN(8) == 0 {
						w.loose[id] = true
						r.loose = append(r.loose, next)
					} else {
						w.stepOf[id] = step
						r.numbers[step] = append(r.numbers[step], next)
					}
					next++
				}
				w.queues[source] = append(w.queues[source], r)
			}
		}
	}
	w.restart()
	return w
}

func (w *world) restart() {
	l, err := NewLedger(limits, w.store, w.now)
	require.NoError(w.t, err)
	w.ledger, w.open, w.closed = l, map[int64]map[spanID]bool{}, map[int64]bool{}
}

// dies kills the gateway one time of so many.
func (w *world) dies(of int) bool {
	if w.kills == 0 || w.random.IntN(of) > 0 {
		return false
	}
	w.kills--
	w.now = w.now.Add(time.Second)
	w.restart()
	return true
}

// send has an agent send the first request of its queue, until it is acknowledged.
func (w *world) send(source string) {
	queue := w.queues[source]
	r := queue[0]
	if w.random.IntN(40) == 0 && len(queue) > 1 && !r.tried { // the agent drops it, and more follows
		for _, numbers := range append([][]int64{r.loose}, mapValues(r.numbers)...) {
			for _, n := range numbers {
				w.dropped[spanID{source, n}] = true
			}
		}
		w.queues[source] = queue[1:]
		return
	}
	if w.dies(60) {
		return
	}
	r.tried = true
	w.ledger.Expect(r.arrival())
	if w.random.IntN(15) == 0 { // refused, and sent again
		w.ledger.Refuse(r.arrival())
		return
	}
	var full []int64
	for step, numbers := range r.numbers {
		if w.closed[step] {
			continue // late, to the analysis
		}
		if w.open[step] == nil {
			w.open[step] = map[spanID]bool{}
		}
		for _, n := range numbers {
			w.open[step][spanID{source, n}] = true
		}
		if w.random.IntN(25) == 0 || len(w.open[step]) == w.sizeOf(step) { // a deadline, or complete
			full = append(full, step)
		}
	}
	for _, step := range full {
		if !w.conclude(step) {
			return
		}
	}
	if w.dies(60) { // accepted, not noted
		return
	}
	require.NoError(w.t, w.ledger.Arrive(r.arrival(), w.now))
	w.note(r)
	if w.dies(60) || w.random.IntN(30) == 0 { // noted, not acknowledged: the sender's time is over
		return
	}
	w.queues[source] = queue[1:]
}

func mapValues(m map[int64][]int64) (out [][]int64) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func (w *world) sizeOf(step int64) (n int) {
	for id, of := range w.stepOf {
		if of == step && !w.dropped[id] {
			n++
		}
	}
	return n
}

// note keeps that the spans of a request arrived.
func (w *world) note(r *request) {
	for _, n := range r.loose {
		w.noted[spanID{r.source, n}] = true
	}
	for step, numbers := range r.numbers {
		for _, n := range numbers {
			id := spanID{r.source, n}
			first := !w.noted[id]
			w.noted[id] = true
			switch {
			case first && w.unsure[step]:
				w.uncertain++
				w.decide(id, uncertain)
			case w.done[step]:
				w.decide(id, late)
			}
		}
	}
}

func (w *world) decide(id spanID, f fate) {
	if w.fates[id] == "" {
		w.fates[id] = f
	}
}

// conclude publishes a step, and reports whether the gateway lives.
func (w *world) conclude(step int64) bool {
	lost := int64(0)
	for id, of := range w.stepOf {
		if of == step && w.noted[id] && w.fates[id] == "" && !w.open[step][id] {
			w.decide(id, missing)
			lost++
		}
	}
	v, err := w.ledger.Begin(of(step))
	require.NoError(w.t, err)
	require.Equal(w.t, lost, v.Lost, "step %d", step)
	require.Equal(w.t, w.done[step], v.Before, "step %d", step)
	if w.dies(10) {
		w.interrupted(step)
		return false
	}
	for id := range w.open[step] {
		if !v.Before {
			w.decide(id, published)
		}
	}
	if w.dies(10) {
		w.interrupted(step)
		return false
	}
	w.closed[step], w.done[step] = true, true
	delete(w.open, step)
	require.NoError(w.t, w.ledger.End([]Step{of(step)}))
	return true
}

// interrupted notes what a kill leaves uncertain.
func (w *world) interrupted(step int64) {
	for id, of := range w.stepOf {
		if of == step && w.noted[id] && !w.done[step] && w.fates[id] != missing {
			w.uncertain++
			w.decide(id, uncertain)
		}
	}
	w.unsure[step] = w.unsure[step] || !w.done[step]
	w.done[step] = true
}

// run sends everything, closes what is open, and lets time decide the rest.
func (w *world) run() {
	for len(w.queues) > 0 {
		for _, source := range []string{"a", "b", "c"} {
			switch {
			case len(w.queues[source]) == 0:
				delete(w.queues, source)
			case w.random.IntN(worldAgents) == 0:
				w.send(source)
			}
		}
		w.now = w.now.Add(10 * time.Millisecond)
	}
	w.kills = 0
	for step := range w.open {
		w.conclude(step)
	}
	for range 3 {
		w.now = w.now.Add(2 * limits.Wait)
		require.NoError(w.t, w.ledger.Tick(w.now))
	}
}

// Every span is concluded, lost and counted, or dropped before and counted, whenever the gateway is killed.
func TestLedger_KilledAtAnyMoment_EverySpanIsCounted(t *testing.T) {
	var sum Totals
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		w.kills = int(seed % 5)
		w.run()
		got := w.ledger.Totals()
		var want Totals
		want.Gap, want.Elsewhere = w.gaps()
		for id := range w.all() {
			switch {
			case w.dropped[id]:
				continue
			case w.loose[id]:
				want.Loose++
			case w.fates[id] == missing || w.fates[id] == "":
				want.Lost++
			}
			want.Arrived++
		}
		want.Uncertain = w.uncertain
		want.Concluded = want.Arrived - want.Loose - want.Lost - want.Uncertain
		want.Again = got.Again
		require.Equal(t, want, got, "seed %d", seed)
		require.Zero(t, w.ledger.Open(), "seed %d", seed)
		sum.Lost, sum.Gap, sum.Elsewhere, sum.Uncertain, sum.Again = sum.Lost+got.Lost, sum.Gap+got.Gap, sum.Elsewhere+got.Elsewhere, sum.Uncertain+got.Uncertain, sum.Again+got.Again
	}
	for what, n := range map[string]int64{"lost": sum.Lost, "gap": sum.Gap, "elsewhere": sum.Elsewhere, "uncertain": sum.Uncertain, "again": sum.Again} {
		assert.Positive(t, n, "some spans are %s", what)
	}
}

// gaps returns how many spans were dropped before and behind the first of their agent that arrived.
func (w *world) gaps() (behind, before int64) {
	last := map[string]int64{}
	for id := range w.all() {
		if !w.dropped[id] {
			last[id.source] = max(last[id.source], id.number)
		}
	}
	for source := range last {
		first := true
		for n := range last[source] {
			switch dropped := w.dropped[spanID{source, n}]; {
			case !dropped:
				first = false
			case first:
				before++
			default:
				behind++
			}
		}
	}
	return behind, before
}

func (w *world) all() map[spanID]bool {
	out := maps.Clone(w.loose)
	for id := range w.stepOf {
		out[id] = true
	}
	return out
}
