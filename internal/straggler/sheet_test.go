// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// drawn is a sheet as it was drawn, with its places by name.
type drawn struct {
	judge.Sheet
	places func(judge.PlaceID) judge.Place
}

// sheetsOf collects the sheets of a world whose first rank has been admitted.
func sheetsOf(w *world) *[]drawn {
	out := &[]drawn{}
	r := w.rank(0)
	j := w.e.job(&r)
	j.sheets = func(s *judge.Sheet) {
		c := drawn{Sheet: *s, places: j.placeOf}
		c.Rows, c.Links = slices.Clone(s.Rows), slices.Clone(s.Links)
		for i := range c.Rows {
			c.Rows[i].Cells = slices.Clone(c.Rows[i].Cells)
		}
		*out = append(*out, c)
	}
	return out
}

// cell returns the cell of a place, and whether there is one.
func (d *drawn) cell(row int, kind judge.Kind, key, name string) (judge.Cell, bool) {
	for _, c := range d.Rows[row].Cells {
		if p := d.places(c.Place); p.Kind == kind && p.Key == key && p.Name == name {
			return c, true
		}
	}
	return judge.Cell{}, false
}

func (d *drawn) mustCell(t *testing.T, row int, kind judge.Kind, key, name string) judge.Cell {
	t.Helper()
	c, ok := d.cell(row, kind, key, name)
	require.True(t, ok, "row %d has no %v %q %q: %+v", row, kind, key, name, d.Rows[row].Cells)
	return c
}

const msTolerance = 1e-6 // s

func TestASheetHasOwnTimeByPlace(t *testing.T) {
	w := newWorld(t, 2)
	sheets := sheetsOf(w)
	for n := range int64(2) {
		w.step(n, "h3:data_loading c10:gemm c4:gemm c1:norm * y2 h5 *", "c10:gemm c4:gemm c1:norm * y2 *")
	}
	require.Len(t, *sheets, 2)
	s := &(*sheets)[0]
	assert.Equal(t, 2, s.World)
	require.Len(t, s.Rows, 2)

	gemm := s.mustCell(t, 0, judge.Compute, "gemm", "")
	assert.Equal(t, uint32(2), gemm.N)
	assert.InDelta(t, 0.014, gemm.Own, msTolerance)
	assert.InDelta(t, 0.007, gemm.Typical, msTolerance, "the median of 10 and 4 ms")
	assert.InDelta(t, 0.010, gemm.Longest, msTolerance)

	data := s.mustCell(t, 0, judge.Host, "data_loading", "")
	assert.InDelta(t, 0.003, data.Own, msTolerance)
	assert.Equal(t, model.CauseDataLoader, s.places(data.Place).Cause)
	other := s.mustCell(t, 0, judge.Host, otherKey, "")
	assert.InDelta(t, 0.005, other.Own, msTolerance)
	assert.InDelta(t, 0.005, other.Longest, msTolerance)
	_, ok := s.cell(1, judge.Host, otherKey, "")
	assert.False(t, ok, "rank 1 was never idle")

	copied := s.mustCell(t, 1, judge.Copy, "memcpy", "")
	assert.InDelta(t, 0.002, copied.Own, msTolerance)
	assert.InDelta(t, 0.008, s.Rows[1].Suffered-s.Rows[0].Suffered, msTolerance, "rank 1 waits for rank 0")
	assert.Equal(t, s.Rows[0].Role, s.Rows[1].Role)
	assert.Same(t, s.Rows[0].Seat, (*sheets)[1].Rows[0].Seat, "a seat is made once")
}

func TestASheetTellsOverlappedOperationsApart(t *testing.T) {
	w := newWorld(t, 2)
	sheets := sheetsOf(w)
	// 9 ms, of which a collective covers the last 5: until it ends 1 ms after it began.
	w.step(0, "c4 x9/4 *", "c4 x9/4 *")
	s := &(*sheets)[0]
	alone := s.mustCell(t, 0, judge.Compute, "gemm", "")
	beside := s.mustCell(t, 0, judge.Overlapped, "gemm", "")
	assert.Equal(t, uint32(1), alone.N)
	assert.InDelta(t, 0.004, alone.Typical, msTolerance, "the operation beside the collective is no measure of it")
	assert.Equal(t, uint32(1), beside.N)
	assert.InDelta(t, 0.009, beside.Typical, msTolerance)
	assert.InDelta(t, 0.013, alone.Own+beside.Own, msTolerance, "every instant counts once")
	assert.InDelta(t, 0.001, beside.Own, msTolerance)
}

func TestASheetTellsKernelsApartByNameAndShape(t *testing.T) {
	w := newWorld(t, 2)
	w.change = func(r int64, op *model.Op) {
		if op.Kind != model.KindCompute {
			return
		}
		op.Key = "gemm"
		if r == 1 && op.Name == "gemm_b" {
			op.WorkTokens = model.Some[int64](512)
		} else {
			op.WorkGrid = "128,2,1"
		}
	}
	sheets := sheetsOf(w)
	w.step(0, "c5:gemm_a c7:gemm_b *", "c5:gemm_a c7:gemm_b *")
	s := &(*sheets)[0]
	a, b := s.mustCell(t, 0, judge.Compute, "gemm", "gemm_a"), s.mustCell(t, 0, judge.Compute, "gemm", "gemm_b")
	assert.InDelta(t, 0.005, a.Own, msTolerance)
	assert.InDelta(t, 0.007, b.Own, msTolerance)
	assert.InDelta(t, 256, a.Work, 0, "without tokens or bytes, the grid")
	assert.Equal(t, "128,2,1", s.places(a.Place).Shape)
	tokens := s.mustCell(t, 1, judge.Compute, "gemm", "gemm_b")
	assert.InDelta(t, 512, tokens.Work, 0)
	assert.NotEqual(t, b.Place, tokens.Place, "another shape is another place")
}

func TestASheetCorrelatesThePassesOfMicrobatches(t *testing.T) {
	w := newWorld(t, 2)
	n := int64(0)
	w.change = func(_ int64, op *model.Op) {
		if op.Kind == model.KindCompute {
			op.Microbatch = model.Some(n / 4 % 4)
			n++
		}
	}
	sheets := sheetsOf(w)
	long := "c1:flash c5:gemm c2:flash_bwd c5:gemm c2:flash c5:gemm c4:flash_bwd c5:gemm c3:flash c5:gemm c6:flash_bwd c50:gemm c4:flash c5:gemm c8:flash_bwd c5:gemm *"
	w.step(0, long, long)
	row := (*sheets)[0].Rows[0]
	assert.InDelta(t, 1, row.Correlation, 1e-5)
	// Both passes, of 17.5 ms that a microbatch typically takes.
	assert.InDelta(t, 3*math.Sqrt(5.0/3)/17.5, row.Variation, 1e-5)

	n = 0
	slow := "c20:flash c4:gemm c40:flash_bwd c4:norm c30:flash c6:gemm c60:flash_bwd c6:norm c40:flash c8:gemm c80:flash_bwd c8:norm c50:flash c10:gemm c100:flash_bwd c10:norm *"
	w.step(1, slow, slow)
	row = (*sheets)[1].Rows[0]
	assert.False(t, row.Correlation > 0.01 && row.Variation > 0.01, "a device that is slow for some microbatches: got %v, %v", row.Correlation, row.Variation)

	w.change = nil
	w.step(2, long, long)
	row = (*sheets)[2].Rows[0]
	assert.True(t, math.IsNaN(float64(row.Correlation)) && math.IsNaN(float64(row.Variation)), "microbatches unknown")
}

// Of noise the passes do not go together, however much of it there is and whatever single
// operations take long.
func TestNoiseOfMicrobatches(t *testing.T) {
	const steps, micro, kernels = 400, 8, 6
	rng := rand.New(rand.NewPCG(1, 2))
	var m microbatches
	var all []float64
	for range steps {
		m.ops = m.ops[:0]
		cells, ends, by := make([]judge.Cell, kernels), make([]int32, kernels), []float32(nil)
		for k := range cells {
			of := make([]float32, micro)
			for i := range of {
				of[i] = float32(1e-3 * math.Exp(0.1*rng.NormFloat64()))
				if rng.Float64() < 0.02 {
					of[i] *= 5
				}
				m.ops = append(m.ops, passOp{cell: int32(k), key: uint32(k), microbatch: int16(i), pass: pass(k % 3 / 2), seconds: of[i]})
			}
			by = append(by, of...)
			cells[k] = judge.Cell{N: micro, Typical: stats.SelectMedian(of)}
			ends[k] = int32(len(by))
		}
		r, _ := m.over(cells, ends, by)
		require.False(t, math.IsNaN(float64(r)))
		all = append(all, float64(r))
	}
	slices.Sort(all)
	assert.InDelta(t, 0, all[steps/2], 0.1)
}

func TestASheetOfADarkRankCarriesItsExcess(t *testing.T) {
	w := newWorld(t, 4)
	w.live = true
	sheets := sheetsOf(w)
	for n := range int64(3) {
		w.step(n, each(4, "s c10 * s", map[int]program{2: "s c16 * s"})...)
	}
	row := (*sheets)[2].Rows[2]
	require.True(t, row.Given)
	assert.InDelta(t, 0.006, row.Excess[judge.Compute], 1e-4)
	assert.InDelta(t, 0, (*sheets)[2].Rows[0].Excess[judge.Compute], 1e-4)
}

func TestASheetHasTheTransfersOfGroups(t *testing.T) {
	w := newWorld(t, 3)
	sheets := sheetsOf(w)
	w.step(0, each(3, "c10 * c2 *", map[int]program{1: "c14 * c2 *"})...)
	require.Len(t, (*sheets)[0].Links, 1)
	l := (*sheets)[0].Links[0]
	assert.Equal(t, "world", l.Comm)
	assert.Equal(t, model.AllReduce, l.Op)
	assert.Equal(t, int64(-1), l.Src)
	assert.Equal(t, uint32(2), l.N)
	assert.InDelta(t, 2*transferMs/1e3, l.Own, msTolerance, "what passed after the last had come")
	assert.InDelta(t, 2048, l.Bytes, 0)
	assert.ElementsMatch(t, []int64{0, 1, 2}, l.Members)
}

func TestASheetHasTheTransfersOfMessages(t *testing.T) {
	w := newWorld(t, 2)
	w.clock = "host"
	sheets := sheetsOf(w)
	message := func(kind model.OpKind, peer int64, from, to float64) model.Op {
		return model.Op{
			Kind: kind, Name: string(kind), Start: nanos(from), End: nanos(to), Step: model.Some[int64](0), WorkBytes: model.Some[int64](4096),
			Peer: model.Some(peer), Comm: model.Comm{ID: "pp"},
			Collective: model.Collective{Seq: model.Some[int64](0), SeqScope: model.ScopeCommFunc},
		}
	}
	w.e.Add(w.rank(0), []model.Op{message(model.KindSend, 1, 50, 53), stepOp(0, 0, 90)})
	w.e.Add(w.rank(1), []model.Op{message(model.KindRecv, 0, 10, 54), stepOp(0, 0, 90)})
	require.Len(t, *sheets, 1)
	require.Len(t, (*sheets)[0].Links, 1)
	l := (*sheets)[0].Links[0]
	assert.Equal(t, []int64{0, 1}, []int64{l.Src, l.Dst})
	assert.InDelta(t, 0.004, l.Own, msTolerance, "not what the receiver waited for the sender")
	assert.InDelta(t, 4096, l.Bytes, 0)
}

func TestASheetHasTheWaitsOfWires(t *testing.T) {
	w := newWorld(t, 4)
	w.ring = func(r int64) hop {
		h := hop{transfer: 10, wire: 2, peer: 4, next: model.Some((r + 1) % 4)}
		if r == 1 {
			h.wire = 8
		}
		return h
	}
	sheets := sheetsOf(w)
	w.step(0, each(4, "c10 *", nil)...)
	links := (*sheets)[0].Links
	require.Len(t, links, 4, "instead of the group's transfer")
	for i, l := range links {
		assert.True(t, l.Given)
		assert.Equal(t, int64(i), l.Src)
		assert.Equal(t, int64(i+1)%4, l.Dst)
	}
	assert.InDelta(t, 0.006, links[1].Excess, msTolerance)
	assert.InDelta(t, 0, links[0].Excess, msTolerance)
}
