// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

const boom = "Traceback (most recent call last):\nValueError: boom\n"

// A rank that ended is in a group that can have it, and has one root.
func TestJudge_RankThatEnded_HasOneRootWhereItCanBe(t *testing.T) {
	type wait struct {
		rank, in    int64
		group, desc string
		op          string
	}
	dp := func(rank, in int64, name string) wait { return wait{rank, in, name, "dp", "ALLREDUCE"} }
	for name, c := range map[string]struct {
		dead    int64
		waits   []wait
		id      string
		waiting []int64
	}{
		"the last of the first block": {2, []wait{dp(0, 0, "10"), dp(1, 1, "10"), dp(3, 0, "11"), dp(4, 1, "11"), {5, 1, "22", "pp", "RECV"}}, "10", []int64{0, 1, 5}},
		"the first of the second":     {3, []wait{dp(0, 0, "10"), dp(1, 1, "10"), dp(2, 2, "10"), dp(4, 1, "11"), dp(5, 2, "11")}, "11", []int64{4, 5}},
		"on the other stride":         {7, []wait{dp(0, 0, "10"), dp(2, 1, "10"), dp(4, 2, "10"), dp(6, 3, "10"), dp(1, 0, "11"), dp(3, 1, "11"), dp(5, 2, "11")}, "11", []int64{1, 3, 5}},
		"no place before the first":   {1, []wait{{2, 0, "5", "tp", "ALLREDUCE"}, {3, 1, "5", "tp", "ALLREDUCE"}, {0, 0, "4", "ep", "ALLREDUCE"}}, "4", []int64{0}},
		"between two":                 {4, []wait{dp(3, 0, "10"), dp(5, 2, "10"), dp(6, 0, "11"), dp(7, 1, "11"), dp(8, 2, "11")}, "10", []int64{3, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{fmt.Sprintf("rank%d.log", c.dead): boom}
			for _, w := range c.waits {
				l[fmt.Sprintf("rank%d.log", w.rank)] = versions["2.14"](&stuckIn{rank: w.rank, in: w.in, group: w.group, desc: w.desc, seq: 12, op: w.op, numIn: 4, out: 4})
			}
			r := l.judge(t, Options{})
			var dead []desync.Root
			for _, root := range r.Roots {
				if root.Finding.Class == model.ClassProcessDead {
					dead = append(dead, root)
				}
			}
			require.Len(t, dead, 1, "%+v", r.Roots)
			f := &dead[0].Finding
			assert.Equal(t, []any{model.Some(c.dead), c.id}, []any{f.Rank, f.CommID})
			assert.Equal(t, c.waiting, f.Waiting)
		})
	}
}

// Two stages that ended, each in a pipeline of its own, are two roots.
func TestJudge_StagesOfTwoPipelinesEnded_AreBothNamed(t *testing.T) {
	for name, c := range map[string]struct {
		dead   [2]int64
		op     string
		member func(rank int64) (group, in int64)
	}{
		"strides":  {[2]int64{2, 5}, "RECV", func(r int64) (int64, int64) { return r % 2, r / 2 }},
		"blocks":   {[2]int64{1, 6}, "RECV", func(r int64) (int64, int64) { return r / 4, r % 4 }},
		"batches":  {[2]int64{4, 3}, "COALESCED", func(r int64) (int64, int64) { return r % 2, r / 2 }},
		"messages": {[2]int64{2, 7}, "SEND", func(r int64) (int64, int64) { return r / 4, r % 4 }},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{}
			for r := range int64(8) {
				g, in := c.member(r)
				l[fmt.Sprintf("rank%d.log", r)] = versions["2.14"](&stuckIn{rank: r, in: in, group: fmt.Sprint(20 + g), desc: "pp", seq: 30 + r, op: c.op, numIn: 4, out: 4})
			}
			for _, r := range c.dead {
				l[fmt.Sprintf("rank%d.log", r)] = boom
			}
			r := l.judge(t, Options{WorldSize: 8})
			named := map[int64]string{}
			ids := map[string]bool{}
			for i := range r.Roots {
				f := &r.Roots[i].Finding
				require.Equal(t, model.ClassProcessDead, f.Class)
				named[f.Rank.Or(-1)] = f.CommID
				ids[f.ID] = true
				assert.Contains(t, evidence.Encode(f.Evidence), "ValueError: boom")
				assert.Positive(t, f.WaitingCount.Or(0))
			}
			want := map[int64]string{}
			for _, d := range c.dead {
				g, _ := c.member(d)
				want[d] = fmt.Sprint(20 + g)
			}
			assert.Equal(t, want, named)
			assert.Len(t, ids, 2)
		})
	}
}

// Old lines that count a rank otherwise than the name of its log, or its label, count within a group.
func TestJudge_NamesContradictOldLines_AreTheRanks(t *testing.T) {
	label := map[string]func(rank int64, text string) string{
		"names": nil,
		"srun":  func(r int64, text string) string { return fmt.Sprintf("%d: %s", r, text) },
		"mpirun": func(r int64, text string) string {
			return fmt.Sprintf("[1,%d]<stderr>:%s", r, text)
		},
	}
	for name, c := range map[string]struct {
		world, first, stride, size, dead int64
	}{
		"the second block": {8, 4, 1, 4, 6},
		"the third":        {12, 8, 1, 4, 9},
		"a stride":         {8, 1, 2, 4, 5},
		"a pair":           {4, 2, 1, 2, 3},
	} {
		for _, version := range []string{"1.13", "2.1"} {
			for kind, put := range label {
				t.Run(name+" "+version+" "+kind, func(t *testing.T) {
					l := logs{}
					for r := range c.world {
						text := "step 3\n"
						in := (r - c.first) / c.stride
						switch {
						case r == c.dead:
							text += "Killed\n"
						case r >= c.first && (r-c.first)%c.stride == 0 && in < c.size:
							text += versions[version](&stuckIn{rank: r, in: in, seq: 7, op: "ALLREDUCE", numIn: 4, out: 4})
						}
						if put == nil {
							l[fmt.Sprintf("rank%d.log", r)] = text
							continue
						}
						for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
							l["job.out"] += put(r, line) + "\n"
						}
					}
					f := assertRoot(t, l.judge(t, Options{WorldSize: c.world}), c.dead, model.ClassProcessDead, "all_reduce 7")
					assert.Equal(t, c.size-1, f.WaitingCount.Or(0))
				})
			}
		}
	}
}

// Names that count nodes, or from one, are no ranks.
func TestJudge_NamesThatAreNoRanks_AreNotTaken(t *testing.T) {
	nodes, fromOne := logs{}, logs{}
	for r := range int64(8) {
		text := versions["2.1"](inDefault(r))
		if r == 6 {
			text = ""
		}
		nodes[fmt.Sprintf("rank%d.log", r/4)] += text
		fromOne[fmt.Sprintf("rank%d.log", r+1)] = "step 1\n" + text
	}
	for _, l := range []logs{nodes, fromOne} {
		r := l.judge(t, Options{WorldSize: 8})
		require.Len(t, r.Roots, 1)
		f := &r.Roots[0].Finding
		assert.Equal(t, []any{"all_reduce 41", int64(7)}, []any{f.Op, r.Waiting})
		for _, other := range []int64{0, 1, 2, 3, 4, 5, 7} {
			assert.NotContains(t, f.Candidates, other)
			assert.NotContains(t, f.Ranks, other)
		}
	}
}

// Of logs that do not tell which ranks timed out it is not said that nothing did.
func TestJudge_RanksUnknown_AreSaidToBe(t *testing.T) {
	merged, named := "", logs{}
	for r := range int64(8) {
		s := inDefault(r)
		s.in, s.seq = r%4, 7+9*(r/4)
		merged += versions["2.1"](s)
		named[fmt.Sprintf("worker-%d.out", r)] = versions["2.1"](s)
	}
	for name, l := range map[string]logs{"one log": {"train.log": merged}, "containers": named} {
		t.Run(name, func(t *testing.T) {
			r := l.judge(t, Options{})
			assert.Equal(t, []any{desync.NoData, 0, int64(0)}, []any{r.Verdict, r.Ranks, r.Waiting})
			assert.NotEmpty(t, r.Unknown)
			assert.Contains(t, r.MayRun, "operations timed out")
		})
	}
}
