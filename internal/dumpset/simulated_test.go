// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// simulated is a job of Gloo whose ranks take steps: pairs reduce and gather, then every second
// rank reduces, then all do. Each rank computes before each call for as long as compute says.
type simulated struct {
	ranks, steps int
	compute      func(random *rand.Rand, rank, step, op int) time.Duration
	only         []int // calls of a step that the job makes; nil: all
	stuckRank    int   // does not come to call stuckOp of stuckStep; -1: none
	stuckStep    int
	stuckOp      int
	skew         map[int]time.Duration // of clocks, by rank
	buffer       int                   // entries kept; 0: all
	network      time.Duration
}

const (
	simStart = 1_758_580_155_000_000_000
	stuckFor = int64(1) << 62
)

// simCall is one call of one rank.
type simCall struct {
	group, desc, name string
	seq, enter, out   int64
	size              int64
}

func (s *simulated) groupOf(op, rank int) (group, desc string, members []int) {
	switch op {
	case 0, 1:
		first := rank / 2 * 2
		return strconv.Itoa(1 + rank/2), "tensor", []int{first, first + 1}
	case 2:
		for r := rank % 2; r < s.ranks; r += 2 {
			members = append(members, r)
		}
		return strconv.Itoa(1 + s.ranks/2 + rank%2), "data", members
	}
	for r := range s.ranks {
		members = append(members, r)
	}
	return "0", "default_pg", members
}

var simNames = []string{"gloo:all_reduce", "gloo:all_gather", "gloo:all_reduce", "gloo:all_reduce"}

// play runs the job: out of a call come all of its members when the last has entered it.
func (s *simulated) play(seed uint64) [][]simCall {
	random := rand.New(rand.NewPCG(seed, 1))
	calls, free := make([][]simCall, s.ranks), make([]int64, s.ranks)
	seqs := map[string]int64{}
	ops := s.only
	if ops == nil {
		ops = []int{0, 1, 2, 3}
	}
	for step := range s.steps {
		for _, op := range ops {
			enter := make([]int64, s.ranks)
			for r := range enter {
				enter[r] = free[r] + int64(s.compute(random, r, step, op))
				if free[r] == stuckFor || r == s.stuckRank && step == s.stuckStep && op == s.stuckOp {
					enter[r] = stuckFor
				}
			}
			counted := map[string]bool{}
			for r := range enter {
				group, desc, members := s.groupOf(op, r)
				if !counted[group] {
					counted[group] = true
					seqs[group]++
				}
				out := int64(0)
				for _, m := range members {
					out = max(out, enter[m])
				}
				if out < stuckFor {
					out += int64(s.network) + random.Int64N(50_000)
				}
				free[r] = out
				if enter[r] < stuckFor {
					calls[r] = append(calls[r], simCall{group, desc, simNames[op], seqs[group], enter[r], out, int64(32 + op)})
				}
			}
		}
	}
	return calls
}

// dump is what the ranks recorded by a moment; 0: when all stands still.
func (s *simulated) dump(calls [][]simCall, at int64) []*frwrite.Dump {
	if at == 0 {
		at = stuckFor - 1
	}
	var out []*frwrite.Dump
	for r, of := range calls {
		d := &frwrite.Dump{Groups: []frwrite.Group{{Ranks: []int64{0, 1}}}}
		for i, c := range of {
			if c.enter > at {
				break
			}
			d.Entries = append(d.Entries, frwrite.Entry{
				RecordID: int64(i), Group: c.group, Desc: c.desc, CollectiveSeq: c.seq, OpID: c.seq, Name: c.name,
				Created: simStart + c.enter + int64(s.skew[r]), In: [][]int64{{c.size}}, Out: [][]int64{{c.size}},
				InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Scheduled, Retired: c.out <= at, TimeoutMS: 600_000,
			})
		}
		if s.buffer > 0 && len(d.Entries) > s.buffer {
			d.Entries = d.Entries[len(d.Entries)-s.buffer:]
		}
		out = append(out, d)
	}
	return out
}

// end is when the last call of a job that does not hang was over.
func end(calls [][]simCall) (last int64) {
	for _, of := range calls {
		last = max(last, of[len(of)-1].out)
	}
	return last
}

// readLost reads dumps whose files have lost their times.
func readLost(t *testing.T, dumps []*frwrite.Dump, hung bool) *Hang {
	t.Helper()
	paths := write(t, filepath.Join(t.TempDir(), "job"), "rank_", dumps)
	now := time.Now()
	for _, p := range paths {
		require.NoError(t, os.Chtimes(p, now, now))
	}
	r := Read(t.Context(), paths, Options{WorldSize: int64(len(dumps)), Hung: hung})
	require.Len(t, r.Hangs, 1)
	return &r.Hangs[0]
}
