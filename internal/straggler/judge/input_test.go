// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestAllEqualIsNobody(t *testing.T) {
	job := newTestJob(8, 1)
	job.lottery, job.noise, job.hostNoise = 0, 0, 0
	expect(t, job.judged())
}

func TestTwoPeers(t *testing.T) {
	expect(t, newTestJob(3, 1).with(slowRank(1, 1.3)).judged(), what{model.ClassCompute, 1})
	expect(t, newTestJob(2, 1).with(slowRank(1, 1.5)).judged(), what{model.ClassCompute, 1})
	// Of two that differ by a tenth, nobody knows which is as it should be.
	got := newTestJob(2, 1).with(slowRank(1, 1.15)).judged()
	expect(t, got)
	if got.Abstained == nil || got.Abstained.Gate != gatePair {
		t.Errorf("got %+v, want an abstention for %s", got.Abstained, gatePair)
	}
}

func TestJudgeChangesNothing(t *testing.T) {
	job := newTestJob(16, 1).with(slowRank(3, 1.2)).with(pausingRank(7, 8, 0.1))
	judge := New(Config{}, job.place)
	for step := range 40 {
		judge.Add(job.step(step))
	}
	if a, b := judge.Judge(), judge.Judge(); !reflect.DeepEqual(a, b) {
		t.Errorf("got %+v, then %+v", a, b)
	}
}

func TestBadInput(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	job := newTestJob(8, 1).with(slowRank(3, 1.3))
	judge := New(Config{}, job.place)
	judge.Add(&Sheet{Step: 1, Seconds: math.NaN()})
	judge.Add(&Sheet{Step: 1, Seconds: -1})
	for step := range 40 {
		s := job.step(step)
		s.Rows = append(s.Rows, Row{}, s.Rows[0], Row{Seat: &Seat{Rank: 99}, Seconds: nan})
		for i, x := range []float32{nan, inf, -1, 1e30} {
			s.Rows[i].Cells[2].Own = x
			s.Rows[i+4].Cells[2].Typical = x
		}
		s.Rows[1].Cells[3].Work = math.Inf(1)
		s.Rows[2].Cells[3].Sent = math.NaN()
		s.Rows[2].Cells = append(s.Rows[2].Cells, Cell{Place: math.MaxUint32, Own: 1})
		s.Links = []Link{{Own: nan}, {Bytes: math.NaN()}, {Excess: inf}}
		judge.Add(s)
	}
	stats := judge.Stats()
	want := Stats{Rows: 320, RowsRefused: 120, CellsRefused: 400, PlacesRefused: 40, LinksRefused: 120, StepsRefused: 2}
	if stats != want {
		t.Errorf("got %+v, want %+v", stats, want)
	}
	expect(t, judge.Judge(), what{model.ClassCompute, 3})
}

func TestRanksComeAndGo(t *testing.T) {
	job := newTestJob(32, 1).with(slowRank(3, 1.3))
	job.steps = 400
	job.missing = func(step, rank int) bool { return (step/50+rank)%4 == 0 && rank != 3 }
	judge := New(Config{Window: 16}, job.place)
	for step := range job.steps {
		judge.Add(job.step(step))
		if step > 8 {
			expect(t, judge.Judge(), what{model.ClassCompute, 3})
		}
	}
	if got := judge.Stats().Forgotten; got == 0 {
		t.Error("got no rank forgotten")
	}
}

func TestAMissingRankIsNotNamed(t *testing.T) {
	job := newTestJob(8, 1).with(slowRank(3, 1.3))
	job.missing = func(_, rank int) bool { return rank == 3 }
	expect(t, job.judged())
}

func TestRoleChanges(t *testing.T) {
	job := newTestJob(16, 1).with(slowRank(3, 1.3)).with(func(step int, rows []testRow) {
		for r := range rows {
			rows[r].role = uint64(step / 20)
		}
	})
	expect(t, job.judged(), what{model.ClassCompute, 3})
}

func TestPlacesAreBounded(t *testing.T) {
	const limit = 1000
	judge := New(Config{MaxPlaces: limit}, func(id PlaceID) Place { return Place{Key: fmt.Sprint(id)} })
	var rows []Row
	for rank := range int64(4) {
		rows = append(rows, Row{Seat: &Seat{Rank: rank}, Seconds: 1})
	}
	for step := range 10 {
		for r := range rows {
			rows[r].Cells = rows[r].Cells[:0]
			for c := range 25_000 {
				rows[r].Cells = append(rows[r].Cells, Cell{Place: PlaceID(step*100_000 + r*25_000 + c), N: 1, Own: 1e-5, Typical: 1e-5})
			}
		}
		judge.Add(&Sheet{Step: int64(step), Seconds: 1, Rows: rows})
	}
	if got := len(judge.places.infos); got > limit {
		t.Errorf("got %d places, want at most %d", got, limit)
	}
	if got := judge.Stats().PlacesRefused; got != 1_000_000-limit {
		t.Errorf("got %d places refused, want %d", got, 1_000_000-limit)
	}
	expect(t, judge.Judge())
}

func TestRanksAndLinksAreBounded(t *testing.T) {
	judge := New(Config{MaxRanks: 10, MaxLinks: 10}, func(PlaceID) Place { return Place{} })
	for step := range 5 {
		s := &Sheet{Step: int64(step), Seconds: 1}
		for rank := range int64(20) {
			s.Rows = append(s.Rows, Row{Seat: &Seat{Rank: rank}, Seconds: 1})
			s.Links = append(s.Links, Link{Src: rank, Dst: rank + 1, Own: 1})
		}
		judge.Add(s)
	}
	if len(judge.history.members) != 10 || len(judge.links.infos) != 10 {
		t.Errorf("got %d ranks and %d links, want 10 of each", len(judge.history.members), len(judge.links.infos))
	}
	if got := judge.Stats(); got.RowsRefused != 50 || got.LinksRefused != 50 {
		t.Errorf("got %+v, want 50 rows and 50 links refused", got)
	}
}

// TestRanksThatLeftMakeRoom has as many ranks as there may be, which others replace.
func TestRanksThatLeftMakeRoom(t *testing.T) {
	const window, change = 16, 20
	judge := New(Config{MaxRanks: 10, Window: window}, func(PlaceID) Place { return Place{} })
	for step := range change + window + 1 {
		s := &Sheet{Step: int64(step), Seconds: 1}
		for rank := range int64(10) {
			if step >= change {
				rank += 10
			}
			s.Rows = append(s.Rows, Row{Seat: &Seat{Rank: rank}, Seconds: 1})
		}
		before := judge.Stats().RowsRefused
		judge.Add(s)
		// The window knows those that left for as long as it is.
		if refused := judge.Stats().RowsRefused - before; refused > 0 && (step < change || step >= change+window) {
			t.Errorf("step %d: got %d rows refused, want none", step, refused)
		}
	}
	if got := len(judge.history.members); got != 10 {
		t.Errorf("got %d ranks, want 10", got)
	}
}

// TestMemory holds the history of 16,384 ranks below 60 MB.
func TestMemory(t *testing.T) {
	const ranks, most = 16384, 60_000_000
	if got := ranks * defaultWindow * int(unsafe.Sizeof(entry{})); got > most {
		t.Errorf("got %d bytes, want at most %d", got, most)
	}
}

func finite(t *testing.T, j Judgement) {
	t.Helper()
	for i := range j.Conclusions {
		c := &j.Conclusions[i]
		for name, x := range map[string]float64{
			"excess": c.Excess, "mean": c.Mean, "share": c.Share, "chance": c.Chance,
			"steadiness": c.Steadiness, "confidence": c.Confidence, "op": c.OpSec,
		} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("got %s %g of %+v", name, x, c)
			}
		}
		for name, x := range c.Numbers {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("got %s %g of %+v", name, x, c)
			}
		}
		if c.Confidence < 0 || c.Confidence > 1 || c.Chance < 0 || c.Chance > 1 {
			t.Errorf("got confidence %g, chance %g; want both from 0 to 1", c.Confidence, c.Chance)
		}
	}
}

// FuzzAdd feeds sheets made of random bits: wild cells, seats and links.
func FuzzAdd(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(5*seed), uint8(20))
	}
	f.Fuzz(func(t *testing.T, seed uint64, ranks, steps uint8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		judge := New(Config{Window: 16, MaxPlaces: 40}, func(id PlaceID) Place {
			return Place{Kind: Kind(id % 5), Key: fmt.Sprint(id % 7), Name: fmt.Sprint(id % 9), Shape: []string{"", "a", "b"}[id%3]}
		})
		for step := range int(steps % 64) { // four windows
			judge.Add(wildSheet(rng, step, int(ranks%48)))
			if step%4 == 0 {
				finite(t, judge.Judge())
			}
		}
		finite(t, judge.Judge())
	})
}

// wild returns a time, mostly a sensible one.
func wild(rng *rand.Rand) float64 {
	switch rng.IntN(24) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*rng.IntN(2))
	case 2:
		return -rng.Float64()
	case 3:
		return math.Float64frombits(rng.Uint64())
	case 4:
		return 0
	case 5:
		return 1e-40
	case 6:
		return 6e5
	}
	return rng.ExpFloat64() * 1e-3
}

func wildSheet(rng *rand.Rand, step, ranks int) *Sheet {
	s := &Sheet{Step: int64(step), Seconds: wild(rng)}
	for r := range ranks {
		small := func() int32 { return int32(rng.IntN(5) - 1) }
		row := Row{
			Seat:    &Seat{Rank: int64(r), Host: []string{"", "a", "b"}[rng.IntN(3)], DP: small(), PP: int32(r%4 - 1), TP: small(), CP: -1, EP: small()},
			Role:    uint64(rng.IntN(2)),
			Seconds: float32(wild(rng)), Given: rng.IntN(10) == 0,
			Correlation: float32(wild(rng)), Variation: float32(wild(rng)),
		}
		if rng.IntN(2) == 0 {
			row.Excess[rng.IntN(4)] = float32(wild(rng))
		}
		for range rng.IntN(12) {
			row.Cells = append(row.Cells, Cell{
				Place: PlaceID(rng.IntN(50)), N: uint32(rng.IntN(4)), Own: float32(wild(rng)),
				Typical: float32(wild(rng)), Longest: float32(wild(rng)), Work: wild(rng),
				Between: uint32(rng.IntN(4)), Sent: wild(rng),
			})
		}
		s.Rows = append(s.Rows, row)
		s.Links = append(s.Links, Link{
			Src: int64(rng.IntN(6) - 1), Dst: int64(rng.IntN(6) - 1), Comm: fmt.Sprint(rng.IntN(3)), Members: []int64{int64(r)},
			Class: uint64(rng.IntN(2)), N: uint32(rng.IntN(3)), Own: float32(wild(rng)), Bytes: wild(rng),
			Given: rng.IntN(4) == 0, Excess: float32(wild(rng)),
		})
	}
	return s
}

func BenchmarkAdd(b *testing.B) {
	for _, dp := range []int{64, 16384} {
		b.Run(fmt.Sprint(dp), func(b *testing.B) {
			job := newTestJob(dp, 1)
			judge := New(Config{}, job.place)
			for step := range 3 {
				judge.Add(job.step(step))
			}
			s := job.step(3)
			b.ReportAllocs()
			for b.Loop() {
				judge.Add(s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*dp), "ns/rank-step")
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, dp := range []int{64, 16384} {
		b.Run(fmt.Sprint(dp), func(b *testing.B) {
			job := newTestJob(dp, 1)
			judge := New(Config{}, job.place)
			for step := range 64 {
				judge.Add(job.step(step % 8))
			}
			b.ReportAllocs()
			for b.Loop() {
				judge.Judge()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*dp), "ns/rank")
		})
	}
}

// Amounts are claims: a link that moved a fraction of a byte, beside one that moved more
// than there are, makes no time endless.
func TestAbsurdAmountsOfBytes(t *testing.T) {
	judge := New(Config{Window: 16}, func(PlaceID) Place { return Place{} })
	for step := range int64(8) {
		s := &Sheet{Step: step, Seconds: 1}
		for i, bytes := range []float64{1e-300, 1e-300, 1e-300, 1e300} {
			s.Rows = append(s.Rows, Row{Seat: &Seat{Rank: int64(i)}, Seconds: 1})
			s.Links = append(s.Links, Link{Src: int64(i), Dst: int64(i+1) % 4, Op: "send_recv", Class: 1, N: 1, Own: 0.1, Bytes: bytes})
		}
		judge.Add(s)
	}
	for _, e := range judge.links.entries {
		if math.IsInf(float64(e.excess), 0) {
			t.Fatalf("got excess %v; want a finite one", e.excess)
		}
	}
	finite(t, judge.Judge())
}
