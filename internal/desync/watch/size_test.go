// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// long is a text of n bytes that no other is.
func long(n, i int) string { return strconv.Itoa(i) + padding[:n] }

var padding = strings.Repeat("x", 100_000)

// flood is what a hostile, but valid sender brings: message i of a kind.
type flood struct {
	name string
	send func(w *Watch, i int, now time.Time)
}

// floods have new texts of 4 kB to 100 kB in each message.
func floods() []flood {
	job := func(i int) *model.Rank {
		return &model.Rank{JobID: "hostile", Incarnation: "x", Rank: int64(i), HostName: long(4000, i)}
	}
	state := func(of *model.Rank, source model.StateSource, i int, now time.Time) *model.RankState {
		s := still(of.Rank, now.UnixNano(), true)
		s.Rank, s.Source, s.HostStack, s.Stacks = *of, source, long(60_000, i), []string{long(40_000, i)}
		s.Comms[0].Members = make([]int64, 1000)
		for k := range s.Comms[0].Members {
			s.Comms[0].Members[k] = int64(k)
		}
		s.Comms[0].Members[999] = of.Rank + 1000
		return s
	}
	return []flood{
		{"new ranks in a job", func(w *Watch, i int, now time.Time) {
			w.AddState(state(job(i), model.StateRankEvents, i, now), now)
		}},
		{"dumps of new ranks", func(w *Watch, i int, now time.Time) {
			w.AddState(state(job(i), model.StateFlightRecorder, i, now), now)
		}},
		{"new states of RAS of 32 ranks", func(w *Watch, i int, now time.Time) {
			w.AddState(state(job(i%32), model.StateRAS, i, now.Add(time.Duration(i))), now)
		}},
		{"new jobs", func(w *Watch, i int, now time.Time) {
			of := model.Rank{JobID: long(4000, i), JobName: long(4000, i), Incarnation: long(4000, i)}
			w.AddState(state(&of, model.StateRankEvents, i, now), now)
		}},
		{"new processes of one rank", func(w *Watch, i int, now time.Time) {
			of := model.Rank{JobID: "hostile", PID: model.Some(int64(i)), HostName: long(4000, i)}
			w.AddState(state(&of, model.StateRankEvents, i, now), now.Add(time.Duration(i)*time.Minute))
		}},
		{"new operations, communicators and functions", func(w *Watch, i int, now time.Time) {
			w.AddOps(&model.RankOps{Rank: *job(i / 64), Ops: []model.Op{{
				Kind: model.KindCollective, Name: long(4000, i), End: now.UnixNano(), Comm: model.Comm{ID: long(4000, i), Name: long(4000, i)},
				Collective: model.Collective{Name: long(4000, i), Seq: model.Some(int64(i))},
			}}}, now)
		}},
		{"new operations in flight", func(w *Watch, i int, now time.Time) {
			w.AddOpen(job(i/32), &model.OpenOp{Time: now.UnixNano(), Scope: long(4000, i), Op: model.Op{
				Kind: model.KindCollective, Name: long(4000, i), Stack: long(20_000, i), Comm: model.Comm{ID: long(4000, i)},
				Collective: model.Collective{Seq: model.Some(int64(i))},
			}}, now)
		}},
		{"new absences", func(w *Watch, i int, now time.Time) {
			w.AddAbsence(job(i), model.Absence{Rank: int64(i), Reason: model.AbsentLate, Detail: long(50_000, i)}, now)
		}},
		{"new facts", func(w *Watch, i int, now time.Time) {
			w.AddFact(&model.Fact{Rank: *job(i), Kind: long(4000, i), Source: long(4000, i), What: long(100_000, i), Network: true}, now)
		}},
		{"new findings", func(w *Watch, i int, now time.Time) {
			w.AddFinding(&model.Finding{ID: long(4000, i), Kind: "fabric", Host: long(4000, i), Link: long(100_000, i), JobID: long(4000, i)}, long(100_000, i), now)
		}},
	}
}

// recount walks all that a watch holds.
func recount(w *Watch) (bytes int) {
	for _, j := range w.jobs {
		bytes += jobBytes + 2*len(j.key.id) + len(j.key.incarnation) + len(j.name) + j.rhythmBytes
		lists := map[list]bool{}
		for _, r := range j.ranks {
			bytes += rankBytes + r.of.TextBytes()
			if a := r.absence; a != nil {
				bytes += int(unsafe.Sizeof(*a)) + len(a.Reason) + len(a.Detail)
			}
			for _, h := range r.states {
				bytes += h.size()
				for _, s := range h.states() {
					for i := 0; s != nil && i < len(s.Comms); i++ {
						lists[listOf(s.Comms[i].Members)] = true
					}
				}
			}
			for _, p := range r.comms {
				bytes += progressBytes + p.comm.TextBytes()
				for name := range p.funcs {
					bytes += reachedBytes + len(name)
				}
			}
			for _, o := range r.opens {
				bytes += openBytes + o.Bytes()
			}
		}
		for l := range lists {
			if l.n > 0 {
				bytes += l.bytes()
			}
		}
		for _, t := range j.told {
			bytes += t.Data.bytes
		}
	}
	return bytes
}

// Whatever a sender floods a watch with, the watch holds at most MaxBytes and reports another job's hang.
func TestWatch_FloodOfLongTexts_StaysWithinBytesAndTellsOfOthers(t *testing.T) {
	const limit = 2 << 20
	messages := tier.N(t, 400, 4000)
	for _, f := range floods() {
		t.Run(f.name, func(t *testing.T) {
			cfg := NewDefaultConfig()
			cfg.MaxBytes = limit
			before := heapOf(t)
			p := newPlant(t, 4, 100*time.Millisecond)
			p.w = New(cfg)
			p.run(30 * time.Second)
			sent := 0
			send := func(n int) {
				for range n {
					f.send(p.w, sent, p.now)
					sent++
					require.LessOrEqual(t, p.w.Bytes(), limit)
				}
			}
			for range 20 {
				send(messages / 20)
				p.run(time.Second)
			}
			assert.Equal(t, recount(p.w), p.w.Bytes(), "what is counted is what is there")
			p.ranks[2].stuck = true
			for range 20 {
				send(messages / 10)
				p.run(time.Second)
			}
			assert.LessOrEqual(t, heapOf(t)-before, int64(2*limit)+maxFacts)
			var told []model.Finding
			for _, x := range p.w.Standing() {
				if x.JobID == "job" {
					told = append(told, x)
				}
			}
			require.Len(t, told, 1, "%+v", p.w.Stats())
			assert.Equal(t, model.Some(int64(2)), told[0].Rank)
			assert.Equal(t, recount(p.w), p.w.Bytes())
		})
	}
}

// maxFacts is what 1,024 facts of others take, with five texts of 1 KiB each.
const maxFacts = 8 << 20

func heapOf(t *testing.T) int64 {
	t.Helper()
	if !tier.Full(t) {
		return 0
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A watch that has forgotten everything counts no bytes.
func TestWatch_EverythingForgotten_CountsNothing(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	for _, f := range floods() {
		for i := range 50 {
			f.send(w, i, now)
		}
	}
	w.Tick(now)
	require.Positive(t, w.Bytes())
	w.Tick(now.Add(1000 * time.Hour))
	assert.Empty(t, w.jobs)
	assert.Zero(t, w.Bytes())
}

// The texts of a rank are parts of those of its first state, which they must not keep alive.
func TestKept_OwnsItsTexts(t *testing.T) {
	whole := strings.Repeat("x", 100)
	r := kept(&model.Rank{HostName: whole[:50], JobID: strings.Repeat("y", 5000)})
	assert.Equal(t, whole[:50], r.HostName)
	assert.Len(t, r.JobID, 1024)
	assert.NotSame(t, unsafe.StringData(whole), unsafe.StringData(r.HostName))
}

// A job that reports many facts does not push out those of other jobs.
func TestWatch_FactsOfOneJob_LeaveThoseOfOthers(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.MaxWitnesses = 8
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	w.AddFact(&model.Fact{Rank: model.Rank{JobID: "quiet"}, Kind: "k"}, now)
	for i := range 20 {
		w.AddFact(&model.Fact{Rank: model.Rank{JobID: "loud"}, Kind: strconv.Itoa(i)}, now)
	}
	facts := slices.Collect(w.witnesses.Keys())
	require.Len(t, facts, 8)
	assert.Equal(t, "quiet", facts[0].job)
	assert.Equal(t, "19 0", facts[7].id, "the newest stay")
	assert.Equal(t, int64(13), w.Stats().WitnessesDropped)
}

// Jobs that report one fact each push out each other's facts. A fact that was just reported again stays.
func TestWatch_FactsOfManyJobs_LeaveThoseToldLast(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.MaxWitnesses = 8
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	tell := func(job, kind string) { w.AddFact(&model.Fact{Rank: model.Rank{JobID: job}, Kind: kind}, now) }
	for i := range 20 {
		tell("quiet", "a")
		tell("quiet", "b")
		tell("new "+strconv.Itoa(i), "a")
	}
	facts := slices.Collect(w.witnesses.Keys())
	require.Len(t, facts, 8)
	var quiet []string
	for _, x := range facts {
		if x.job == "quiet" {
			quiet = append(quiet, x.id)
		}
	}
	assert.Equal(t, []string{"a 0", "b 0"}, quiet)
	assert.Equal(t, int64(14), w.Stats().WitnessesDropped)
}

// Facts of jobs that are not followed leave before those of jobs that are, and those of the network.
func TestWatch_FactsOfUnfollowedJobs_LeaveFirst(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.MaxWitnesses = 8
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	w.AddState(still(0, now.UnixNano(), true), now)
	w.AddFinding(&model.Finding{ID: "network", Kind: "fabric"}, "a port is down", now)
	w.AddFact(&model.Fact{Rank: model.Rank{JobID: "job"}, Kind: "k"}, now)
	for i := range 20 {
		w.AddFact(&model.Fact{Rank: model.Rank{JobID: "new " + strconv.Itoa(i)}, Kind: "k"}, now)
	}
	facts := slices.Collect(w.witnesses.Keys())
	require.Len(t, facts, 8)
	assert.Equal(t, []string{"network", "k 0"}, []string{facts[0].id, facts[1].id})
	assert.Equal(t, []string{"", "job", "new 14"}, []string{facts[0].job, facts[1].job, facts[2].job})
	assert.Len(t, w.jobs, 1)
}

// A rank that is no longer absent gives back the bytes of its absence, whatever it reports about itself.
func TestWatch_AbsenceIsOver_BytesAreGivenBack(t *testing.T) {
	for name, send := range map[string]func(w *Watch, now time.Time){
		"its state": func(w *Watch, now time.Time) {
			s := still(0, now.UnixNano(), true)
			s.Process = model.ProcessRunning
			w.AddState(s, now)
		},
		"its dump": func(w *Watch, now time.Time) {
			s := still(0, now.UnixNano(), true)
			s.Source = model.StateFlightRecorder
			w.AddState(s, now)
		},
		"an operation": func(w *Watch, now time.Time) {
			w.AddOps(&model.RankOps{Rank: still(0, 0, true).Rank, Ops: []model.Op{{
				Kind: model.KindCollective, Name: "all_reduce", End: now.UnixNano(), Comm: model.Comm{ID: "c"},
			}}}, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
			of := still(0, 0, true).Rank
			w.AddAbsence(&of, model.Absence{Reason: model.AbsentLate, Detail: strings.Repeat("d", 50_000)}, now)
			require.Equal(t, recount(w), w.Bytes())
			send(w, now.Add(time.Minute))
			for _, j := range w.jobs {
				require.Nil(t, j.ranks[0].absence)
			}
			assert.Equal(t, recount(w), w.Bytes())
		})
	}
}

// Many jobs, each of them smaller than one whose ranks hang, do not push that out.
func TestWatch_FloodOfSmallerJobs_TellsOfALargeOne(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.MaxBytes = 1 << 20
	p := newPlant(t, 64, 100*time.Millisecond)
	p.w = New(cfg)
	p.run(30 * time.Second)
	large := p.w.jobs[jobKey{"job", "life"}]
	require.Greater(t, large.share.Bytes(), cfg.MaxBytes/8)
	p.ranks[2].stuck = true
	for range 60 {
		for i := range int64(20 * 8) {
			s := still(i%8, p.now.UnixNano(), true)
			s.Rank.JobID, s.HostStack = "small "+strconv.FormatInt(i/8, 10), strings.Repeat("s", 6000)
			p.w.AddState(s, p.now)
		}
		p.run(500 * time.Millisecond)
	}
	require.Positive(t, p.w.Stats().JobsEvicted)
	assert.Same(t, large, p.w.jobs[jobKey{"job", "life"}])
	require.Len(t, large.told, 1)
}
