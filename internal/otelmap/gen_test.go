// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// filler sets every field of a struct by reflection, so that a field which
// nobody maps comes back empty and fails a round trip. With sparse it leaves
// about half of the fields empty.
type filler struct {
	rng    *rand.Rand
	sparse bool
}

func newFiller(seed uint64, sparse bool) *filler {
	return &filler{rng: rand.New(rand.NewPCG(seed, 1)), sparse: sparse}
}

func (g *filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	if g.sparse && v.Kind() != reflect.Struct && g.rng.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("é %d", g.rng.Uint64()))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(g.rng.Uint64()))
	case reflect.Uint8:
		v.SetUint(g.rng.Uint64N(255) + 1)
	case reflect.Float64:
		v.SetFloat(g.rng.NormFloat64())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		g.fillStruct(t, v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+g.rng.IntN(5), 8))
		g.fillElements(t, v)
	case reflect.Array:
		g.fillElements(t, v)
	case reflect.Interface: // evidence, as it comes
		v.Set(reflect.ValueOf(evidence.Text(fmt.Sprintf("é %d", g.rng.Uint64()))))
	default:
		t.Fatalf("fill %s: a kind that the generator does not know", v.Type())
	}
}

func (g *filler) fillElements(t *testing.T, v reflect.Value) {
	t.Helper()
	sparse := g.sparse
	g.sparse = false
	for i := range v.Len() {
		g.fill(t, v.Index(i))
	}
	g.sparse = sparse
}

// fillStruct fills all fields; an unknown optional keeps the zero value.
func (g *filler) fillStruct(t *testing.T, v reflect.Value) {
	t.Helper()
	if ok := v.FieldByName("OK"); ok.IsValid() && v.NumField() == 2 {
		if !g.sparse || g.rng.IntN(2) == 0 {
			sparse := g.sparse
			g.sparse = false
			g.fill(t, v.Field(0))
			ok.SetBool(true)
			g.sparse = sparse
		}
		return
	}
	for i := range v.NumField() {
		g.fill(t, v.Field(i))
	}
}

func randomOp(t *testing.T, seed uint64, sparse bool) model.Op {
	t.Helper()
	var op model.Op
	newFiller(seed, sparse).fill(t, reflect.ValueOf(&op).Elem())
	kinds := []model.OpKind{
		model.KindCompute, model.KindCollective, model.KindSend, model.KindRecv,
		model.KindCopy, model.KindHost, model.KindScope, model.KindStep,
	}
	op.Kind = kinds[seed%uint64(len(kinds))]
	op.Step.V = max(op.Step.V, ^op.Step.V) // at least 0
	inTime := func(at int64) int64 { return model.EarliestTime + max(at, ^at)%(model.LatestTime-model.EarliestTime) }
	op.Start, op.End = inTime(op.Start), inTime(op.End)
	op.Start, op.End = min(op.Start, op.End), max(op.Start, op.End)
	if !op.Step.OK {
		op.Step.V = 0
	}
	op.LinksDropped &= 0xffffffff // as wide as a span's count of them
	return op
}

func randomRank(t *testing.T, seed uint64, sparse bool) model.Rank {
	t.Helper()
	var r model.Rank
	newFiller(seed, sparse).fill(t, reflect.ValueOf(&r).Elem())
	r.Rank = max(r.Rank, ^r.Rank) // at least 0
	return r
}

func randomFinding(t *testing.T, seed uint64, sparse bool) model.Finding {
	t.Helper()
	var f model.Finding
	g := newFiller(seed, sparse)
	g.fill(t, reflect.ValueOf(&f).Elem())
	f.Severity = model.Severity(g.rng.IntN(3))
	f.Unnumbered = false // it does not leave the analysis
	return f
}
