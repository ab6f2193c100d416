// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// filler sets every field of a struct by reflection, so that a field which nobody encodes
// comes back empty. With sparse it leaves about half of them empty.
type filler struct {
	rng    *rand.Rand
	sparse bool
}

func (g *filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	empty := g.sparse && v.Kind() != reflect.Struct && g.rng.IntN(2) == 0
	switch {
	case empty:
		return
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("é %d", g.rng.IntN(50)))
	case v.Kind() == reflect.Int, v.Kind() == reflect.Int64:
		v.SetInt(int64(g.rng.Uint64()) >> g.rng.IntN(63))
	case v.Kind() == reflect.Float64:
		v.SetFloat(g.rng.NormFloat64())
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.Struct:
		g.fields(t, v)
	case v.Kind() == reflect.Slice:
		n := 1 + g.rng.IntN(5)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			g.fill(t, v.Index(i))
		}
	default:
		t.Fatalf("fill %s: a kind that the generator does not know", v.Type())
	}
}

// fields fills all; an unknown optional keeps the zero value.
func (g *filler) fields(t *testing.T, v reflect.Value) {
	t.Helper()
	if ok := v.FieldByName("OK"); ok.IsValid() && v.NumField() == 2 {
		if !g.sparse || g.rng.IntN(2) == 0 {
			g.fill(t, v.Field(0))
			ok.SetBool(true)
		}
		return
	}
	for i := range v.NumField() {
		g.fill(t, v.Field(i))
	}
}

// randomState is a state with everything that a reader lets pass.
func randomState(t *testing.T, seed uint64, sparse bool) model.RankState {
	t.Helper()
	g := filler{rng: rand.New(rand.NewPCG(seed, 1)), sparse: sparse}
	var s model.RankState
	g.fill(t, reflect.ValueOf(&s).Elem())
	s.Rank.Rank = g.rng.Int64N(1 << 31)
	for i := range s.Comms {
		for j := range s.Comms[i].Members {
			s.Comms[i].Members[j] = g.rng.Int64N(1 << 31)
		}
	}
	if len(s.Comms) == 0 {
		s.Ops = nil
	}
	kinds := []model.OpKind{model.KindCollective, model.KindSend, model.KindRecv}
	for i := range s.Ops {
		o := &s.Ops[i]
		o.Kind = kinds[g.rng.IntN(len(kinds))]
		o.Comm = g.rng.IntN(len(s.Comms))
		o.Stack = g.rng.IntN(len(s.Stacks) + 1)
	}
	return s
}

// typicalState is that of one rank of a job of world ranks that hangs: 13 communicators and
// 50 operations.
func typicalState(rank, world int64) model.RankState {
	s := model.RankState{
		Rank: model.Rank{
			JobName: "llama-70b", JobID: "4711", Incarnation: "0a1b2c3d4e5f6071", Rank: rank, LocalRank: model.Some(rank % 8),
			WorldSize: model.Some(world), HostName: fmt.Sprintf("node%d", rank/8), HostID: fmt.Sprintf("host-%016x", rank/8),
			HWID: fmt.Sprintf("GPU-%032x", rank), PID: model.Some(rank + 10000), ClockID: fmt.Sprintf("host:%016x/boot/realtime", rank/8),
		},
		Time: 1763856792000000000, Source: model.StateRankEvents, Name: fmt.Sprintf("ring-%d", rank), LibVersion: "2.28.7",
		Process: model.ProcessRunning, Silent: model.Some(0.25), Phase: "train", LastEnqueue: 1763856790123456789,
	}
	all := strided(0, 1, world)
	for i := range int64(13) {
		members := all
		if i > 0 {
			members = strided(rank%(i*8), i*8, world/(i*8))
		}
		s.Comms = append(s.Comms, model.CommState{
			Comm:    model.Comm{ID: fmt.Sprintf("0x%016x", i*world+rank%(i*8+1)), Name: fmt.Sprintf("GROUP_%d", i), Digest: fmt.Sprintf("%016x", i), Size: model.Some(int64(len(members))), Rank: model.Some(i)},
			Backend: "nccl", Members: members, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{
				{Func: model.AllReduce, Enqueued: model.Some(812 + i), Started: model.Some(812 + i), Completed: model.Some(811 + i)},
				{Func: model.AllGather, Enqueued: model.Some(3812 + i), Completed: model.Some(3811 + i)},
			},
		})
	}
	for i := range 50 {
		s.Ops = append(s.Ops, model.StateOp{
			Kind: model.KindCollective, Name: model.AllReduce, Recorded: "nccl:all_reduce", Comm: i % 13, Seq: int64(800 + i), Done: i < 25,
			In: fmt.Sprintf("[[%d, 5120]]", 1024<<(i%3)), Out: fmt.Sprintf("[[%d, 5120]]", 1024<<(i%3)), InElems: model.Some(int64(5120 << 10)), OutElems: model.Some(int64(5120 << 10)),
			InType: "BFloat16", OutType: "BFloat16", Created: 1763856790000000000 + int64(i)*1234567, Timeout: model.Some(600.0), Thread: "main",
		})
	}
	return s
}

func strided(from, stride, n int64) []int64 {
	ranks := make([]int64, n)
	for i := range ranks {
		ranks[i] = from + int64(i)*stride
	}
	return ranks
}
