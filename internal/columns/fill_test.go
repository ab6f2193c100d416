// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// filler sets the fields of a struct by reflection, so that a field without a column comes back empty and fails a
// round trip. Sparse leaves about half of the optional fields empty.
type filler struct {
	rng    *rand.Rand
	sparse bool
}

func (g *filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	if g.sparse && v.Kind() != reflect.Struct && g.rng.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("é %d", g.rng.Uint64N(1000)))
	case reflect.Int64:
		v.SetInt(int64(g.rng.Uint64()))
	case reflect.Uint8:
		v.SetUint(g.rng.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(g.rng.NormFloat64())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		g.fillStruct(t, v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+g.rng.IntN(4), 8))
		g.fillAll(t, v)
	case reflect.Array:
		g.fillAll(t, v)
	default:
		t.Fatalf("fill %s: a kind that the filler does not know", v.Type())
	}
}

func (g *filler) fillAll(t *testing.T, v reflect.Value) {
	t.Helper()
	whole := &filler{rng: g.rng}
	for i := range v.Len() {
		whole.fill(t, v.Index(i))
	}
}

func (g *filler) fillStruct(t *testing.T, v reflect.Value) {
	t.Helper()
	if ok := v.FieldByName("OK"); ok.IsValid() && v.NumField() == 2 {
		if !g.sparse || g.rng.IntN(2) == 0 {
			(&filler{rng: g.rng}).fill(t, v.Field(0))
			ok.SetBool(true)
		}
		return
	}
	for i := range v.NumField() {
		g.fill(t, v.Field(i))
	}
}

// written returns a file of batches.
func written(tb testing.TB, m Meta, batches []Batch) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, m)
	require.NoError(tb, err)
	for i := range batches {
		require.NoError(tb, w.Add(&batches[i].Rank, batches[i].Ops, batches[i].Summaries))
	}
	require.NoError(tb, w.Close())
	return out.Bytes()
}

// read returns all batches of a file, in its order.
func read(b []byte) (m Meta, batches []Batch, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return m, nil, err
	}
	defer f.Close()
	for i := range f.Groups() {
		more, err := f.Read(i)
		if err != nil {
			return f.Meta, nil, err
		}
		batches = append(batches, more...)
	}
	return f.Meta, batches, nil
}

// randomBatches returns operations of some ranks, each with its summaries.
func randomBatches(t *testing.T, seed uint64, ranks, ops int, sparse bool) []Batch {
	t.Helper()
	g := &filler{rng: rand.New(rand.NewPCG(seed, 1)), sparse: sparse}
	out := make([]Batch, ranks)
	for i := range out {
		b := &out[i]
		g.fill(t, reflect.ValueOf(&b.Rank).Elem())
		b.Rank.Rank = int64(i)
		b.Rank.JobID, b.Rank.Incarnation = "job", "life"
		b.Ops = make([]model.Op, ops)
		b.Summaries = map[int]*model.Summary{}
		for k := range b.Ops {
			g.fill(t, reflect.ValueOf(&b.Ops[k]).Elem())
			// The start orders the operations of a rank, of one stream and one kind.
			b.Ops[k].Start = int64(k) * 1_000_000_007
			b.Ops[k].Stream, b.Ops[k].Kind = model.Some(int64(7)), model.KindStep
			if k%3 == 0 {
				b.Summaries[k] = &model.Summary{}
				g.fill(t, reflect.ValueOf(b.Summaries[k]).Elem())
			}
		}
	}
	return out
}
