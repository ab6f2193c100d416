// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ahead is how far the GPU's clock is ahead of the host's.
const ahead = 1_700_000_000_000_000_000

// ncclJob is a job of two ranks whose rings are right: on the world three all-reduces,
// of which the last two are of one call, and a message each way; on a pair a broadcast.
func ncclJob() (truths []*ncclTruth, seen []*ringSeen) {
	for rank := range 2 {
		other := int32(1 - rank)
		t := &ncclTruth{Rank: rank, World: 2, PID: uint64(100 + rank), LateRank: 1, LateNS: 500_000, Groups: []ncclGroup{
			{"world", 2, int32(rank)}, {"pair", 2, int32(rank)},
		}}
		at := uint64(1_000_000_000 + 1000*rank)
		add := func(phase string, call int, group, function string, bytes uint64, peer int32) {
			dtype := "ncclFloat32"
			if function == "Broadcast" {
				dtype = "ncclInt8"
			}
			if phase == ncclLate && rank == 1 {
				at += 600_000
			}
			t.Ops = append(t.Ops, ncclOp{phase, call, group, function, bytes, dtype, peer, at, at + 100_000, at + 900_000})
			at += 1_000_000
		}
		add(ncclList, 1, "world", "AllReduce", 4096, 0)
		add(ncclList, 2, "world", "AllReduce", 100, 0)
		add(ncclList, 2, "world", "AllReduce", 200, 0)
		add(ncclList, 3, "world", "Send", 50, other)
		add(ncclList, 3, "world", "Recv", 50, other)
		add(ncclList, 4, "pair", "Broadcast", 77, 1)
		add(ncclLate, 5, "world", "AllReduce", 64, 0)
		truths = append(truths, t)
		seen = append(seen, ringFor(t))
	}
	return truths, seen
}

// ringFor returns the ring of a rank as it is when everything is right. NCCL takes the
// larger operation of call 2 first.
func ringFor(t *ncclTruth) *ringSeen {
	s := &ringSeen{Closed: true, Drops: map[string]uint64{}, Kinds: map[string]uint64{ring.KindOp.String(): uint64(len(t.Ops))}, Header: ring.Header{PID: t.PID, Rank: int32(t.Rank), WorldSize: 2}}
	world := ncclComm{Comm: ring.Comm{Index: 1, Hash: 0xa, Ranks: 2, Rank: int32(t.Rank), ABI: 5}}
	pair := ncclComm{Comm: ring.Comm{Index: 2, Hash: 0xb, Ranks: 2, Rank: int32(t.Rank), ABI: 5}}
	next := map[string]uint64{}
	for _, i := range []int{0, 2, 1, 3, 4, 5, 6} {
		o := &t.Ops[i]
		c, flags := &world, ring.FlagKernel|ring.FlagProxy|ring.FlagWaits
		if o.Group == "pair" {
			c = &pair
		}
		switch o.Function {
		case "Send":
			flags |= ring.FlagSend
		case "Recv":
			flags |= ring.FlagRecv
		}
		c.Ops = append(c.Ops, ncclRecord{
			Function: o.Function, DType: o.DType, Algo: "RING", Proto: "SIMPLE", Seq: next[o.Function], Bytes: o.Bytes, Peer: o.Peer,
			Order: o.Before + 10_000, Completed: o.After, KernelStart: o.Before + 20_000 + ahead, KernelStop: o.After - 20_000 + ahead, Flags: flags,
		})
		next[o.Function]++
	}
	for function, n := range next {
		c := &world
		if function == "Broadcast" {
			c = &pair
		}
		last := ring.Mark{Known: true, Seq: n - 1}
		c.Frontiers = append(c.Frontiers, ncclFrontier{function, ring.Frontier{Enqueued: last, Started: last, Completed: last, Total: n}})
	}
	world.sort()
	s.Comms = []ncclComm{world, pair}
	return s
}

func TestCompareNCCL_RightRings_NoProblem(t *testing.T) {
	truths, seen := ncclJob()
	v := compareNCCL(truths, seen)
	assert.Empty(t, v.Problems)
	assert.Equal(t, 14, v.Want)
	assert.Len(t, v.Pairs, 14)
	assert.Equal(t, map[string]int{"RING/SIMPLE": 10}, v.Names)
	for rank := range 2 {
		times := kernelTimes(v.Pairs, rank)
		assert.Empty(t, times.Problems)
		assert.Equal(t, 7, times.Kernels)
	}
	rank, gap, err := lateRank(v)
	require.NoError(t, err)
	assert.Equal(t, 1, rank)
	assert.Equal(t, uint64(601_000), gap)
}

// TestCompareNCCL_WrongRings_Problem spoils the ring of rank 1, on which operation 0 of
// the world is the all-reduce of 4,096 bytes.
func TestCompareNCCL_WrongRings_Problem(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *ringSeen)
		about string
		want  string
	}{
		"an operation is missing": {func(s *ringSeen) { s.Comms[0].Ops = s.Comms[0].Ops[1:] }, ncclAboutOps, "got 3 AllReduce; want 4"},
		"one too many": {func(s *ringSeen) {
			extra := s.Comms[0].Ops[3]
			extra.Seq++
			s.Comms[0].Ops = append(s.Comms[0].Ops, extra)
		}, ncclAboutOps, "got 5 AllReduce; want 4"},
		"a function that was not called": {func(s *ringSeen) {
			s.Comms[1].Ops = append(s.Comms[1].Ops, ncclRecord{Function: "Reduce"})
		}, ncclAboutOps, "got 1 Reduce; want 0"},
		"wrong bytes":                  {func(s *ringSeen) { s.Comms[0].Ops[0].Bytes = 8192 }, ncclAboutOps, "got 8192 bytes for AllReduce of 4096 bytes"},
		"wrong type":                   {func(s *ringSeen) { s.Comms[0].Ops[0].DType = "ncclFloat16" }, ncclAboutOps, "got type ncclFloat16"},
		"another root":                 {func(s *ringSeen) { s.Comms[1].Ops[0].Peer = 0 }, ncclAboutOps, "got root 0"},
		"another peer":                 {func(s *ringSeen) { s.op("Send").Peer = 5 }, ncclAboutOps, "got 0 Send; want 1"},
		"a number is left out":         {func(s *ringSeen) { s.Comms[0].Ops[3].Seq = 9 }, ncclAboutOps, "got number 9 of AllReduce; want 3"},
		"other numbers than on rank 0": {func(s *ringSeen) { s.Comms[1].Ops[0].Seq = 1 }, ncclAboutOps, "got first number 1 of Broadcast; want 0"},
		"not completed":                {func(s *ringSeen) { s.Comms[0].Ops[0].Completed = 0 }, ncclAboutEnds, "got no end of AllReduce"},
		"only enqueued":                {func(s *ringSeen) { s.Comms[0].Ops[0].Flags |= ring.FlagEnqueuedOnly }, ncclAboutEnds, "got no end of AllReduce"},
		"records overwritten":          {func(s *ringSeen) { s.Lost = 3 }, ncclAboutOps, "3 records were overwritten"},
		"another process":              {func(s *ringSeen) { s.Header.PID = 1 }, ncclAboutOps, "got no ring of process 101"},
		"another rank":                 {func(s *ringSeen) { s.Header.Rank = 0 }, ncclAboutComms, "got a ring of rank 0 of 2"},
		"another hash":                 {func(s *ringSeen) { s.Comms[1].Hash = 0xc }, ncclAboutComms, "group pair has hash 0xc; want 0xb"},
		"another size":                 {func(s *ringSeen) { s.Comms[0].Ranks = 3 }, ncclAboutComms, "has rank 1 of 3; want 1 of 2"},
		"a communicator is missing":    {func(s *ringSeen) { s.Comms = s.Comms[:1] }, ncclAboutComms, "got operations on 1 communicators; want 2"},
		"before its call":              {func(s *ringSeen) { s.Comms[0].Ops[0].Order -= 20_000 }, ncclAboutTimes, "began -0.010 ms after its call"},
		"after its end":                {func(s *ringSeen) { s.Comms[0].Ops[0].Order += 1_000_000 }, ncclAboutTimes, "began 1.010 ms after its call"},
		"open at the end":              {func(s *ringSeen) { s.Comms[1].Frontiers[0].Open = 1 }, ncclAboutFrontiers, "1 open"},
		"completed to another number":  {func(s *ringSeen) { s.Comms[1].Frontiers[0].Completed.Seq = 7 }, ncclAboutFrontiers, "completed to 7; want 0"},
		"no frontier":                  {func(s *ringSeen) { s.Comms[1].Frontiers = nil }, ncclAboutFrontiers, "got no frontier of Broadcast"},
	} {
		t.Run(name, func(t *testing.T) {
			truths, seen := ncclJob()
			c.spoil(seen[1])
			assert.Contains(t, strings.Join(compareNCCL(truths, seen).Problems[c.about], "\n"), c.want)
		})
	}
}

func TestSelfEnds(t *testing.T) {
	for _, c := range []struct {
		name     string
		channels uint64 // of kernels that NCCL reported
		ended    int    // of the messages
		want     string // problem
	}{
		{"nothing reports an end", 0, 0, ""},
		{"all have one", 4, 2, ""},
		{"kernels are known, ends are not", 4, 0, "got no end of Recv"},
		{"one is known, one is not", 0, 1, "got no end of Send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			truths, seen := ncclJob()
			only := *truths[0]
			only.Ops = only.Ops[3:5]
			s := *seen[0]
			s.Comms = []ncclComm{{Comm: s.Comms[0].Comm, Ops: []ncclRecord{*seen[0].op("Recv"), *seen[0].op("Send")}}}
			s.Kinds = map[string]uint64{ring.KindKernelChannel.String(): c.channels}
			for i := range s.Comms[0].Ops[c.ended:] {
				s.Comms[0].Ops[c.ended+i].Completed = 0
			}
			_, problems := selfEnds(&s, compareNCCL([]*ncclTruth{&only}, []*ringSeen{&s}))
			if c.want == "" {
				assert.Empty(t, problems)
				return
			}
			assert.Contains(t, strings.Join(problems, "\n"), c.want)
		})
	}
}

// op returns the first operation of a function on the world.
func (s *ringSeen) op(function string) *ncclRecord {
	for i := range s.Comms[0].Ops {
		if s.Comms[0].Ops[i].Function == function {
			return &s.Comms[0].Ops[i]
		}
	}
	return nil
}

func TestKernelTimes_OutsideItsCall_Problem(t *testing.T) {
	for name, spoil := range map[string]func(r *ncclRecord){
		"late":     func(r *ncclRecord) { r.KernelStart, r.KernelStop = r.KernelStart+1_000_000, r.KernelStop+1_000_000 },
		"early":    func(r *ncclRecord) { r.KernelStart, r.KernelStop = r.KernelStart-1_000_000, r.KernelStop-1_000_000 },
		"too long": func(r *ncclRecord) { r.KernelStop += 100_000 },
		"backward": func(r *ncclRecord) { r.KernelStart, r.KernelStop = r.KernelStop, r.KernelStart },
	} {
		t.Run(name, func(t *testing.T) {
			truths, seen := ncclJob()
			spoil(&seen[1].Comms[0].Ops[2])
			v := compareNCCL(truths, seen)
			assert.Empty(t, kernelTimes(v.Pairs, 0).Problems)
			assert.NotEmpty(t, kernelTimes(v.Pairs, 1).Problems)
		})
	}
}

func TestLateRank_AnotherRankIsLast_IsNamed(t *testing.T) {
	truths, seen := ncclJob()
	seen[0].Comms[0].Ops[3].Order += 800_000
	rank, _, err := lateRank(compareNCCL(truths, seen))
	require.NoError(t, err)
	assert.Equal(t, 0, rank)
	seen[0].Comms[0].Ops = seen[0].Comms[0].Ops[:3]
	_, _, err = lateRank(compareNCCL(truths, seen))
	assert.ErrorContains(t, err, "got the operation on 1 of 2 ranks")
}

func TestCompareOpen(t *testing.T) {
	truths, _ := ncclJob()
	truths[0].Ops = []ncclOp{{Phase: ncclOpen, Function: "AllReduce", Bytes: 40}}
	line := func(rank int, open string) string { return fmt.Sprintf(`{"rank":%d,"open":[%s]}`+"\n", rank, open) }
	const right = `{"name":"AllReduce","state":"started","for_ns":5,"detail":{"bytes":40}}`
	for _, c := range []struct{ name, out, want string }{
		{"right", line(0, right) + line(1, ""), ""},
		{"the sleeper has one", line(0, right) + line(1, right), "rank 1, which sleeps: got AllReduce open"},
		{"nothing is open", line(0, "") + line(1, ""), "rank 0: got 0 operations open"},
		{"other bytes", line(0, strings.Replace(right, "40", "41", 1)) + line(1, ""), "got AllReduce of 41 bytes open"},
		{"another state", line(0, strings.Replace(right, "started", "ending", 1)) + line(1, ""), "got state ending"},
		{"a rank is missing", line(0, right), "rank 1: got no line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, err := parseShown(c.out)
			require.NoError(t, err)
			problems := compareOpen(shown, truths)
			if c.want == "" {
				assert.Empty(t, problems)
			} else {
				assert.Contains(t, strings.Join(problems, "\n"), c.want)
			}
		})
	}
	_, err := parseShown("no JSON")
	assert.ErrorContains(t, err, "read rings")
}

func TestCompareRAS(t *testing.T) {
	right := func() *ras.Status {
		s := &ras.Status{Comms: []ras.Comm{{Hash: 0xa, Size: 2}, {Hash: 0xb, Size: 2}}}
		for rank := range 2 {
			s.Comms[0].Ranks = append(s.Comms[0].Ranks, ras.Rank{Process: ras.Process{Rank: rank}, Counts: []ras.Count{{Func: "AllReduce", N: 4}}})
			s.Comms[1].Ranks = append(s.Comms[1].Ranks, ras.Rank{Process: ras.Process{Rank: rank}, Counts: []ras.Count{{Func: "Broadcast", N: 1}, {Func: "Reduce"}}})
		}
		return s
	}
	truths, seen := ncclJob()
	counted, problems := compareRAS(right(), truths, seen)
	assert.Empty(t, problems)
	assert.Equal(t, 10, counted)
	assert.Empty(t, behind(right()))
	for _, c := range []struct {
		want  string
		spoil func(s *ras.Status)
	}{
		{"world, rank 1: got 3 AllReduce; want 4", func(s *ras.Status) { s.Comms[0].Ranks[1].Counts[0].N = 3 }},
		{"pair, rank 0: got 2 Reduce; want 0", func(s *ras.Status) { s.Comms[1].Ranks[0].Counts[1].N = 2 }},
		{"got no communicator 0xb", func(s *ras.Status) { s.Comms[1].Hash = 1 }},
		{"world: got size 4; want 2", func(s *ras.Status) { s.Comms[0].Size = 4 }},
		{"world: got no answer of rank 1", func(s *ras.Status) { s.Comms[0].Ranks = s.Comms[0].Ranks[:1] }},
	} {
		s := right()
		c.spoil(s)
		_, problems := compareRAS(s, truths, seen)
		assert.Contains(t, problems[0], c.want)
	}
	s := right()
	s.Comms[0].Ranks[1].Counts[0].N = 3
	assert.Equal(t, []int{1}, behind(s))
}

func TestJudgeVersion(t *testing.T) {
	refused := fmt.Errorf("ask NCCL's RAS: %w", syscall.ECONNREFUSED)
	version := &fleet.Read{Versions: []fleet.Version{{Version: "2.28.9"}}}
	for name, c := range map[string]struct {
		watch ncclWatch
		want  report.Status
	}{
		"right":              {ncclWatch{versions: version}, report.Shown},
		"another":            {ncclWatch{versions: &fleet.Read{Versions: []fleet.Version{{Version: "2.27.7"}}}}, report.Failed},
		"no process listens": {ncclWatch{versions: &fleet.Read{}, heldErr: refused}, report.NotShown},
		"no whole JSON":      {ncclWatch{versions: version, heldErr: errors.New("cut")}, report.Failed},
		"not asked":          {ncclWatch{}, report.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			p := report.NewPart("nccl", "", 0)
			c.watch.n = &ncclChecks{k: &kit.Kit{GPU: &kit.GPU{}}, p: p, good: report.Shown}
			c.watch.judgeVersion("2.28.9")
			require.Len(t, p.Checks, 1)
			assert.Equal(t, c.want, p.Checks[0].Status, p.Checks[0].Text)
		})
	}
}

func TestInterfaceOf(t *testing.T) {
	for version, want := range map[string]int{"2.22.3": 0, "2.23.4": 1, "2.25.1": 2, "2.26.2": 3, "2.27.3": 4, "2.28.9": 5, "2.30.7": 6, "2.31.2": 7, "": 0, "3.1": 0} {
		assert.Equal(t, want, interfaceOf(version), version)
	}
}

func TestLibraryProblems(t *testing.T) {
	has := map[string]bool{"ncclProfiler_v4": true, "ncclProfiler_v5": true}
	assert.Empty(t, libraryProblems("2.28.9", 5, has))
	assert.NotEmpty(t, libraryProblems("2.29.2", 6, has))
	assert.NotEmpty(t, libraryProblems("1.0", 0, has))
	has["ncclProfiler_v8"] = true
	assert.Contains(t, libraryProblems("2.40.1", 7, has)[0], "the plugin has v7 at most")
}

func TestFindStrings_AcrossBlocks_Found(t *testing.T) {
	at := searchBytes - 4
	text := strings.Repeat("x", at) + "NCCL_HOSTID\x00" + strings.Repeat("y", 2*searchBytes) + "ncclProfiler_v5_t\x00"
	found, err := findStrings(strings.NewReader(text), []string{"NCCL_HOSTID", "ncclProfiler_v5", "ncclProfiler_v5_t"})
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{"NCCL_HOSTID": true, "ncclProfiler_v5": false, "ncclProfiler_v5_t": true}, found)
}

func TestNCCLWays_OrderAndEnvironment(t *testing.T) {
	assert.Empty(t, waysOf(map[string]bool{}))
	ways := waysOf(map[string]bool{multiRank: true, hostID: true})
	require.Len(t, ways, 2)
	assert.Equal(t, []string{"NCCL_MULTI_RANK_GPU_ENABLE=1"}, ways[0].Env(1))
	assert.Equal(t, []string{"NCCL_HOSTID=lockstep-1"}, ways[1].Env(1))
}

func TestNCCLWords(t *testing.T) {
	log := "vm:1:1 [0] NCCL INFO x\nvm:1:1 [0] lockstep:157 NCCL WARN PROFILER/lockstep: ring of 8 lanes\nvm:1:1 [0] ras/client_support.cc:181 NCCL WARN Call to bind failed: Address already in use\nvm:1:1 [0] init.cc:842 NCCL WARN Duplicate GPU detected : rank 0 and rank 1\nvm:1:1 [0] NCCL WARN later\n"
	assert.Equal(t, "Duplicate GPU detected : rank 0 and rank 1", ncclWords(&ncclResult{Log: log}))
	assert.Equal(t, "ValueError: x", ncclWords(&ncclResult{Truths: []*ncclTruth{{Error: "ValueError: x"}}}))
	assert.Equal(t, "it gave no reason", ncclWords(&ncclResult{}))
}

func TestDropProblems(t *testing.T) {
	_, seen := ncclJob()
	for range 100 {
		seen[0].Comms[0].Ops = append(seen[0].Comms[0].Ops, ncclRecord{})
	}
	require.Equal(t, 107, seen[0].ops())
	for _, c := range []struct {
		reason string
		most   uint64 // of 114 operations
	}{{"inferred", 1 << 20}, {"shared_lane", 1 << 20}, {"stale_handle", 1}, {"bad_gpu_time", 1}, {"finalized", 1}, {"foreign_pid", 0}, {"slots_full", 0}} {
		seen[0].Drops = map[string]uint64{c.reason: c.most}
		problems, _ := dropProblems(seen)
		assert.Empty(t, problems, c.reason)
		seen[1].Drops = map[string]uint64{c.reason: 1}
		problems, figures := dropProblems(seen)
		assert.Equal(t, c.most < 1<<20, len(problems) == 1, c.reason)
		assert.Equal(t, []report.Figure{figure(c.reason, int(c.most)+1)}, figures)
		seen[1].Drops = nil
	}
}

// statuses runs a check of NCCL on a GPU, and returns the status of each line.
func ncclStatuses(check func(n *ncclChecks)) map[string]report.Status {
	p := report.NewPart("nccl", "", 0)
	check(&ncclChecks{k: &kit.Kit{GPU: &kit.GPU{}}, p: p, good: report.Shown})
	all := map[string]report.Status{}
	for _, c := range p.Checks {
		all[c.Name] = c.Status
	}
	return all
}

func TestSeveral_NoRing_NothingIsShown(t *testing.T) {
	for name, spoil := range map[string]func(res *ncclResult){
		"no ring at all":         func(res *ncclResult) { res.Seen = nil },
		"one ring of two":        func(res *ncclResult) { res.Seen = res.Seen[:1] },
		"no rank wrote anything": func(res *ncclResult) { res.Truths, res.Seen = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			truths, seen := ncclJob()
			res := &ncclResult{Truths: truths, Seen: seen}
			spoil(res)
			got := ncclStatuses(func(n *ncclChecks) { n.several("ranks-2", res, 2, gpuWay{}) })
			for _, topic := range []string{"operations", "communicators", "times", "frontiers", "gpu-clock", "drops", "end"} {
				assert.Equal(t, report.Failed, got["ranks-2-"+topic], topic)
			}
		})
	}
}

func TestSeveral_RingWithoutOperations_NothingIsShown(t *testing.T) {
	truths, seen := ncclJob()
	seen[1].Comms = nil
	got := ncclStatuses(func(n *ncclChecks) { n.several("ranks-2", &ncclResult{Truths: truths, Seen: seen}, 2, gpuWay{}) })
	for _, topic := range []string{"operations", "communicators", "times", "frontiers", "gpu-clock"} {
		assert.Equal(t, report.Failed, got["ranks-2-"+topic], topic)
	}
}

func TestSeveral_RightRings_Shown(t *testing.T) {
	truths, seen := ncclJob()
	for _, r := range truths {
		r.Ended, r.Phases = true, []string{ncclList, ncclLate}
	}
	for name, status := range ncclStatuses(func(n *ncclChecks) { n.several("ranks-2", &ncclResult{Truths: truths, Seen: seen}, 2, gpuWay{}) }) {
		assert.Equal(t, report.Shown, status, name)
	}
}

func TestCounted_OperationsOfOneRank(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *ringSeen)
		want  report.Status
	}{
		"all":           {func(*ringSeen) {}, report.Shown},
		"some":          {func(s *ringSeen) { s.Comms = s.Comms[:1] }, report.Noted},
		"none":          {func(s *ringSeen) { s.Comms = nil }, report.NotShown},
		"one is open":   {func(s *ringSeen) { s.Comms[1].Frontiers[0].Open = 1 }, report.Failed},
		"more than all": {func(s *ringSeen) { s.Comms[1].Ops = append(s.Comms[1].Ops, ncclRecord{}) }, report.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			truths, seen := ncclJob()
			c.spoil(seen[0])
			assert.Equal(t, c.want, ncclStatuses(func(n *ncclChecks) { n.counted(truths[0], seen[0]) })["rank-1-callbacks"])
		})
	}
}

func TestCosts_Measured_Noted(t *testing.T) {
	off, on := [][]float64{flat(1000, 70), flat(1010, 70)}, [][]float64{flat(9000, 70), flat(9010, 70)}
	for _, world := range []int{1, 2} {
		got := ncclStatuses(func(n *ncclChecks) { n.costs("cost", world, off, on, off, on) })
		assert.Equal(t, map[string]report.Status{"cost": report.Noted}, got)
	}
}

func TestFailed_NotShownOnlyWhereNCCLRefusesWithoutThePlugin(t *testing.T) {
	const words = "Duplicate GPU detected : rank 0 and rank 1"
	refuses := undone(&ncclResult{Log: "vm:1:1 [0] init.cc:842 NCCL WARN " + words + "\n"})
	require.ErrorIs(t, refuses, errRefused)
	breaks := undone(&ncclResult{Truths: []*ncclTruth{{Error: noModule}}})
	require.ErrorIs(t, breaks, errUndone)
	for name, c := range map[string]struct {
		whys    []error
		control error
		want    report.Status
		text    string
	}{
		"NCCL refuses both":         {[]error{refuses, refuses}, refuses, report.NotShown, words},
		"without the plugin, works": {[]error{refuses}, nil, report.Failed, "the ranks work without the plugin, and not with it: "},
		"no time for the control":   {[]error{refuses}, kit.ErrNoTime, report.Failed, "the job without the plugin, which would decide, had no time"},
		"another reason":            {[]error{breaks}, breaks, report.Failed, noModule},
		"one way for another":       {[]error{breaks, refuses}, refuses, report.Failed, noModule},
		"the control for another":   {[]error{refuses}, breaks, report.Failed, "without the plugin: "},
	} {
		p := report.NewPart("nccl", "", 0)
		(&ncclChecks{p: p}).failed("ranks-2", c.whys, c.control)
		require.Len(t, p.Checks, 1, name)
		assert.Equal(t, c.want, p.Checks[0].Status, name)
		assert.Contains(t, p.Checks[0].Text, c.text, name)
	}
}

func TestSeveralRanks_RanksBreak_Failed(t *testing.T) {
	for words, want := range map[string]report.Status{refused(0).Error: report.NotShown, noModule: report.Failed} {
		k := rankFails(t, words)
		got := map[string]report.Status{}
		p := report.NewPart("nccl", "", 0)
		n := &ncclChecks{k: k, p: p, good: report.Shown, way: &gpuWay{}}
		n.fourRanks(t.Context())
		n.severalRanks(t.Context())
		for _, c := range p.Checks {
			got[c.Name] = c.Status
		}
		assert.Equal(t, map[string]report.Status{"ranks-2": want, "ranks-4": want}, got, words)
	}
}

func TestWithoutPlugin_NoTimeLeft_IsNoRefusal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	assert.ErrorIs(t, (&ncclChecks{}).withoutPlugin(ctx, 2, gpuWay{}), kit.ErrNoTime)
}

func TestLost_AWayThatBroke_Failed(t *testing.T) {
	got := ncclStatuses(func(n *ncclChecks) { n.lost("ranks-2", []error{errRefused}) })
	assert.Empty(t, got)
	got = ncclStatuses(func(n *ncclChecks) { n.lost("ranks-2", []error{errUndone}) })
	assert.Equal(t, map[string]report.Status{"ranks-2-way": report.Failed}, got)
}

func TestCut_TimeOfThePart_NotShown(t *testing.T) {
	over := fmt.Errorf("run nccl_ranks.py: %w", kit.ErrNoTime)
	assert.Equal(t, map[string]report.Status{"ranks-4": report.NotShown}, ncclStatuses(func(n *ncclChecks) { assert.True(t, n.cut("ranks-4", &ncclResult{Err: over})) }))
	late := fmt.Errorf("run nccl_ranks.py: %w", kit.ErrLimit)
	assert.Empty(t, ncclStatuses(func(n *ncclChecks) { assert.False(t, n.cut("ranks-4", &ncclResult{Err: late})) }))
}

// flat returns n values around a mean.
func flat(mean float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean + float64(i%7) - 3
	}
	return out
}

func TestCostOf(t *testing.T) {
	off, on := [][]float64{flat(1000, 70), flat(1010, 70)}, [][]float64{flat(1100, 70), flat(1110, 70)}
	c, err := costOf(off, on)
	require.NoError(t, err)
	assert.InDelta(t, 100, c.Diff, 1)
	assert.LessOrEqual(t, c.Low, 100.0)
	assert.GreaterOrEqual(t, c.High, 100.0)
	assert.Greater(t, c.Low, 85.0)
	c, err = costOf(off, off)
	require.NoError(t, err)
	assert.Zero(t, c.Diff)
	_, err = costOf(off, on[:1])
	require.ErrorContains(t, err, "got 2 without and 1 with")
	_, err = costOf([][]float64{flat(1, 5)}, [][]float64{flat(1, 70)})
	assert.ErrorContains(t, err, "got 5 operations")
}

func TestTook_OneValueACall(t *testing.T) {
	whole, call := took(&ncclTruth{Ops: []ncclOp{
		{Phase: "warm", Call: 1, Before: 1, Called: 2, After: 3},
		{Phase: ncclLoop, Call: 2, Before: 10, Called: 14, After: 30},
		{Phase: ncclLoop, Call: 2, Before: 10, Called: 14, After: 30},
		{Phase: ncclLoop, Call: 3, Before: 40, Called: 41, After: 45},
	}})
	assert.Equal(t, []float64{20, 5}, whole)
	assert.Equal(t, []float64{4, 1}, call)
}

func TestChainProblems(t *testing.T) {
	truths, seen := ncclJob()
	res := &ncclResult{Truths: truths, Seen: seen}
	assert.Empty(t, chainProblems(res, 1, 2))
	assert.Equal(t, []string{"the other plugin wrote no file"}, chainProblems(res, 0, 2))
	assert.Equal(t, []string{"got 2 rings; want 1"}, chainProblems(res, 1, 1))
	assert.Equal(t, []string{"got 0 rings; want 1"}, chainProblems(&ncclResult{}, 1, 1))
	seen[0].Comms[0].Ops[0].Bytes++
	assert.NotEmpty(t, chainProblems(res, 1, 2))
	empty := &ncclResult{Seen: []*ringSeen{{}}}
	assert.Equal(t, []string{"rank 0: got no record in its ring; want some"}, chainProblems(empty, 1, 1))
	empty.Seen[0].Kinds = map[string]uint64{ring.KindOp.String(): 1}
	assert.Empty(t, chainProblems(empty, 1, 1))
}

// loopKit returns a kit on a GPU whose Python does the loop: it writes what a rank does,
// without a ring.
func loopKit(t *testing.T) *kit.Kit {
	t.Helper()
	truth := ncclTruth{World: 1, Phases: []string{ncclLoop}, Ended: true}
	for i := range leastOps {
		truth.Ops = append(truth.Ops, ncclOp{Phase: ncclLoop, Call: i + 1, Before: 1000, Called: 1010, After: 1100})
	}
	text, err := json.Marshal(truth)
	require.NoError(t, err)
	k := testKit(t)
	k.GPU, k.Python = &kit.GPU{}, filepath.Join(k.Dir, "python3")
	script := "#!/bin/sh\nwhile [ \"$1\" != --folder ]; do shift; done\necho '" + string(text) + "' >\"$2/truth-0.json\"\n"
	require.NoError(t, os.WriteFile(k.Python, []byte(script), 0o700))
	return k
}

func TestCost_RunWithPluginWithoutRing_Failed(t *testing.T) {
	p := report.NewPart("nccl", "", 0)
	n := &ncclChecks{k: loopKit(t), p: p, good: report.Shown}
	n.cost(t.Context(), 1)
	require.Len(t, p.Checks, 1)
	assert.Equal(t, report.Failed, p.Checks[0].Status)
	assert.Contains(t, p.Checks[0].Text, "got 0 rings; want 1")
}

func TestKeep_RingsOnlyWhereThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "rings"), 0o700))
	for _, name := range []string{"truth-0.json", "nccl-0.log", "rings/a.ring"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	n := &ncclChecks{p: report.NewPart("nccl", "", 0)}
	n.keep(ncclRun{Name: "one", World: 1, Phases: []string{ncclList}}, &ncclResult{Dir: dir})
	assert.Equal(t, []kit.Entry{{Name: "one/truth-0.json", Content: []byte("x")}, {Name: "one/nccl-0.log", Content: []byte("x")}}, n.entries)
	assert.Equal(t, []kit.Entry{{Name: "one/a.ring", Content: []byte("x")}}, n.rings)
}

func TestLoopProblems_RingWithoutOperations_Problem(t *testing.T) {
	_, seen := ncclJob()
	assert.Empty(t, loopProblems(&ncclResult{Seen: seen}, 2))
	seen[1].Comms = nil
	assert.Equal(t, []string{"rank 1: got no operation in its ring; want those of the loop"}, loopProblems(&ncclResult{Seen: seen}, 2))
}

func TestCostAndChain_NCCLReportsNoMessageToItself_NotShown(t *testing.T) {
	inspector := filepath.Join(t.TempDir(), "libnccl-profiler-inspector.so")
	require.NoError(t, os.WriteFile(inspector, nil, 0o600))
	t.Setenv("NCCL_INSPECTOR_PLUGIN", inspector)
	truths, seen := ncclJob()
	seen[0].Comms = nil
	got := ncclStatuses(func(n *ncclChecks) {
		n.selfMessages(truths[0], seen[0])
		n.cost(t.Context(), 1)
		n.chain(t.Context())
	})
	assert.Equal(t, map[string]report.Status{"rank-1-messages": report.NotShown, "cost-1-rank": report.NotShown, "chain": report.NotShown}, got)
}

func TestParts_WithoutPython_NotShown(t *testing.T) {
	for _, a := range []Part{ncclPart(), hangsPart()} {
		k := kit.New(t.TempDir(), t.TempDir(), t.TempDir())
		k.Reason = "no python3"
		p := a.Do(t.Context(), k)
		require.Len(t, p.Checks, 1)
		assert.Equal(t, report.NotShown, p.Checks[0].Status)
		assert.Contains(t, p.Checks[0].Text, "no python3")
	}
}

func TestAsk_AnswerOfTheServer_KeptAsItIs(t *testing.T) {
	const answer = `{"nccl_version":"2.28.9","communicators":[{"hash":"0xa","size":2,"ranks":[]}]}`
	server := rastest.Start(t, answer)
	n := &ncclChecks{k: &kit.Kit{GPU: &kit.GPU{}}}
	s, err := (&ncclWatch{n: n}).ask(t.Context(), &ncclRunning{Address: server.Address, World: 2}, "ras-held.json")
	require.NoError(t, err)
	assert.Equal(t, "2.28.9", s.NCCLVersion)
	require.Len(t, n.entries, 1)
	assert.Equal(t, "ras-2/ras-held.json", n.entries[0].Name)
	assert.JSONEq(t, answer, string(n.entries[0].Content))
}

func TestFilesOfPrograms_TooLarge_NamesFileSizeAndLimit(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"truth-1.json", "nccl-1.log"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, maxTruth+1))
	}
	_, err := readTruths[ncclTruth](dir, 2)
	require.ErrorContains(t, err, "truth-1.json: got 16777217 bytes; want at most 16777216")
	_, err = ncclLog(dir, 2)
	require.ErrorContains(t, err, "nccl-1.log: got 16777217 bytes; want at most 16777216")
}

func TestCost_BusyGPU_NotShown(t *testing.T) {
	p := report.NewPart("nccl", "", 0)
	n := &ncclChecks{k: &kit.Kit{GPU: &kit.GPU{}, Busy: "other programs use it"}, p: p, good: report.Shown}
	n.cost(t.Context(), 1)
	require.Len(t, p.Checks, 1)
	assert.Equal(t, report.NotShown, p.Checks[0].Status)
	assert.Equal(t, "other programs use it", p.Checks[0].Text)
}
