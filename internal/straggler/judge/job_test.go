// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// testJob makes sheets of a job: every rank runs the kernels of its stage, with idle
// gaps in two scopes, and noise.
type testJob struct {
	dp, pp, tp, ep int
	perHost        int
	lottery        float64 // standard deviation of what ranks differ by for good
	noise          float64 // of a rank's kernel from step to step
	hostNoise      float64 // of idleness
	kernels        []kernel
	idle           float64 // s per step in each scope
	mutate         []func(step int, rows []testRow)
	steps          int
	missing        func(step, rank int) bool
	links          func(rng *rand.Rand, step int) []Link
	seconds        func(step int) float64

	rng    *rand.Rand
	chips  []float64
	places []Place
	ids    map[Place]PlaceID
	rows   []testRow
	sheet  Sheet
	seats  []Seat
}

type kernel struct {
	key, name, shape string
	n                int
	each             float64 // s
	work             float64
	overlapped       bool
	backward         bool
	between          int     // of n, those between two all_to_all's
	sent             float64 // bytes, for each of them
}

// testRow is a rank's step before it becomes a row: what each kernel takes, and how
// long the host is idle.
type testRow struct {
	dp, pp, tp, ep int
	host           string
	kernels        []kernel
	slow           float64 // factor on all kernels
	idle           map[string]float64
	longest        map[string]float64
	correlation    float64
	variation      float64
	role           uint64
	gone           bool
	lost           float64 // share of the operations that is not recorded
	hollow         bool
}

var testKernels = []kernel{
	{key: "gemm", name: "gemm_128", shape: "64x1 f16", n: 24, each: 2e-3},
	{key: "attention", name: "flash", shape: "32x8 f16", n: 12, each: 2e-3},
	{key: "norm", name: "norm", shape: "64x1 f32", n: 24, each: 1e-4, overlapped: true},
}

func newTestJob(dp int, seed uint64) *testJob {
	return &testJob{
		dp: dp, pp: 1, tp: 1, ep: 1, perHost: 8, lottery: 0.007, noise: 0.01, hostNoise: 0.1, kernels: testKernels,
		idle: 5e-3, steps: 64, rng: rand.New(rand.NewPCG(seed, 1)), ids: map[Place]PlaceID{},
	}
}

func (j *testJob) with(f func(step int, rows []testRow)) *testJob {
	j.mutate = append(j.mutate, f)
	return j
}

// rank returns the number of a rank in a job without experts: tensor first, then data,
// then pipeline.
func (j *testJob) world() int { return j.dp * j.pp * j.tp }

func (j *testJob) id(p Place) PlaceID {
	id, ok := j.ids[p]
	if !ok {
		id = PlaceID(len(j.places))
		j.ids[p] = id
		j.places = append(j.places, p)
	}
	return id
}

func (j *testJob) place(id PlaceID) Place { return j.places[id] }

var testCauses = map[string]string{"data_loading": model.CauseDataLoader, "garbage_collection": model.CauseGC}

func (j *testJob) step(step int) *Sheet {
	n := j.world()
	if j.chips == nil {
		j.seats = make([]Seat, n)
		for range n {
			j.chips = append(j.chips, math.Exp(j.lottery*j.rng.NormFloat64()))
		}
	}
	j.rows = grown(j.rows, n)
	for r := range j.rows {
		j.rows[r] = testRow{
			tp: r % j.tp, dp: r / j.tp % j.dp, pp: r / j.tp / j.dp, ep: r / j.tp % j.dp % j.ep,
			host: "node" + string(rune('a'+r/j.perHost%26)) + string(rune('a'+r/j.perHost/26)), slow: 1,
			kernels: append([]kernel(nil), j.kernels...),
			idle:    map[string]float64{"forward": j.idle * j.wobble(j.hostNoise), "data_loading": j.idle * j.wobble(j.hostNoise)},
			longest: map[string]float64{}, correlation: math.NaN(), variation: math.NaN(),
			role: uint64(r / j.tp / j.dp),
		}
	}
	for _, f := range j.mutate {
		f(step, j.rows)
	}
	s := &j.sheet
	s.Step, s.World, s.Seconds = int64(step), n, 0.15
	if j.seconds != nil {
		s.Seconds = j.seconds(step)
	}
	s.Rows, s.Links = s.Rows[:0], s.Links[:0]
	for r := range j.rows {
		if j.rows[r].gone || (j.missing != nil && j.missing(step, r)) {
			continue
		}
		s.Rows = append(s.Rows, j.row(r, &j.rows[r]))
	}
	if j.links != nil {
		s.Links = j.links(j.rng, step)
	}
	return s
}

func (j *testJob) wobble(sigma float64) float64 { return math.Exp(sigma * j.rng.NormFloat64()) }

func (j *testJob) row(rank int, r *testRow) Row {
	seat := &j.seats[rank]
	*seat = Seat{Rank: int64(rank), Host: r.host, DP: int32(r.dp), PP: int32(r.pp), TP: int32(r.tp), CP: -1, EP: int32(r.ep)}
	if j.ep == 1 {
		seat.EP = -1
	}
	out := Row{Seat: seat, Role: r.role, Seconds: float32(j.sheet.Seconds), Correlation: float32(r.correlation), Variation: float32(r.variation), Lost: float32(r.lost), Hollow: r.hollow}
	for _, k := range r.kernels {
		each := k.each * r.slow * j.chips[rank] * j.wobble(j.noise)
		kind := Compute
		if k.overlapped {
			kind = Overlapped
		}
		own := each * float64(k.n)
		if j.noise > 0 && j.rng.Float64() < 0.01*float64(k.n) { // one operation in a hundred takes long
			own += each * (1 + 9*j.rng.Float64())
		}
		out.Cells = append(out.Cells, Cell{
			Place: j.id(Place{Kind: kind, Key: k.key, Name: k.name, Shape: k.shape, Backward: k.backward}),
			N:     uint32(k.n), Own: float32(own), Typical: float32(each), Longest: float32(each), Work: k.work * float64(k.n),
			Between: uint32(k.between), Sent: k.sent * float64(k.between),
		})
	}
	for _, scope := range sortedKeys(r.idle) {
		s := r.idle[scope]
		long := s / 10
		if l, ok := r.longest[scope]; ok {
			long = l
		}
		out.Cells = append(out.Cells, Cell{
			Place: j.id(Place{Kind: Host, Key: scope, Cause: testCauses[scope]}), N: 10, Own: float32(s), Longest: float32(long),
		})
	}
	return out
}

// judged runs the job to its end and judges it once.
func (j *testJob) judged() Judgement {
	judge := New(Config{}, j.place)
	for step := range j.steps {
		judge.Add(j.step(step))
	}
	return judge.Judge()
}

// Faults.

func slowRank(rank int, by float64) func(int, []testRow) {
	return func(_ int, rows []testRow) { rows[rank].slow *= by }
}

func slowDuring(rank int, by float64, from, to int) func(int, []testRow) {
	return func(step int, rows []testRow) {
		if step >= from && step < to {
			rows[rank].slow *= by
		}
	}
}

func slowKernel(rank int, key string, by float64) func(int, []testRow) {
	return func(_ int, rows []testRow) {
		for k := range rows[rank].kernels {
			if rows[rank].kernels[k].key == key {
				rows[rank].kernels[k].each *= by
			}
		}
	}
}

func idleRank(rank int, scope string, s float64) func(int, []testRow) {
	return func(_ int, rows []testRow) { rows[rank].idle[scope] += s }
}

func pausingRank(rank, every int, s float64) func(int, []testRow) {
	return func(step int, rows []testRow) {
		if (step+rank*7)%every == 0 {
			rows[rank].idle["garbage_collection"] += s
			rows[rank].longest["garbage_collection"] = s
		}
	}
}

// what is short for what a conclusion says.
type what struct {
	class string
	rank  int64
}

func said(j Judgement) (out []what) {
	for i := range j.Conclusions {
		out = append(out, what{j.Conclusions[i].Class, j.Conclusions[i].Rank})
	}
	return out
}

func same(got, want []what) bool {
	if len(got) != len(want) {
		return false
	}
	for _, w := range want {
		found := false
		for _, g := range got {
			found = found || g == w
		}
		if !found {
			return false
		}
	}
	return true
}

func expect(t *testing.T, got Judgement, want ...what) {
	t.Helper()
	if !same(said(got), want) {
		t.Errorf("got %+v, want %v; abstained %+v", got.Conclusions, want, got.Abstained)
	}
}
