// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// long is a name of 1,000 bytes that no other is.
func long(i int) string { return strconv.Itoa(i) + padding[:1000-len(strconv.Itoa(i))] }

var padding = strings.Repeat("x", 1000)

// hostile returns an observation of a job that is not under test.
func hostile(save int64, domain, observer string) model.EpochObservation {
	return model.EpochObservation{
		JobID: "hostile", Generation: "g", Save: save, Domain: model.Domain{Kind: model.DomainModel, ID: domain},
		State: model.DomainCommitted, Epoch: model.Some(save), Observer: observer, Revision: 1,
	}
}

// floods are valid observations, with something new in each.
var floods = map[string]func(i int) model.EpochObservation{
	"new domains": func(i int) model.EpochObservation { return hostile(1, long(i), "o") },
	"new kinds": func(i int) model.EpochObservation {
		o := hostile(1, "d", "o")
		o.Domain.Kind, o.Of = model.DomainKind(long(i)), 1
		return o
	},
	"kinds of new saves": func(i int) model.EpochObservation {
		o := hostile(int64(i/64), "d", "o")
		o.Domain.Kind, o.Of = model.DomainKind(long(i%64)), 1
		return o
	},
	// Each of many saves has one register, which is that of the last domain.
	"the last domain of new saves": func(i int) model.EpochObservation { return hostile(int64(i/64), long(i%2000), "o") },
	"new observers":                func(i int) model.EpochObservation { return hostile(1, "d", long(i)) },
	"new generations": func(i int) model.EpochObservation {
		o := hostile(1, long(i), "o")
		o.Generation = long(i)
		return o
	},
	"new jobs": func(i int) model.EpochObservation {
		o := hostile(1, long(i), long(i))
		o.JobID = long(i)
		return o
	},
}

// recount walks all that an engine holds.
func recount(e *Engine) (bytes int) {
	for id, j := range e.jobs {
		bytes += jobBytes + len(id) + len(j.observers)*observerBytes
		for name, g := range j.generations {
			bytes += generationBytes + len(name)
			for _, d := range g.domains {
				bytes += domainBytes + len(d.Kind) + len(d.ID)
			}
			for _, s := range g.saves {
				bytes += saveBytes + cap(s.cells)*cellBytes + (len(s.of)+len(s.more))*mapBytes + 8*cap(s.told) + s.beside
				for _, more := range s.more {
					bytes += len(more) * cellBytes
				}
			}
		}
	}
	return bytes
}

// Whatever floods an engine, the engine keeps to its bytes. It judges another job that is reported as before.
func TestEngine_Flood_StaysWithinBytesAndJudgesOthers(t *testing.T) {
	const limit = 1 << 20
	n := tier.N(t, 4000, 100_000)
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			before := heap()
			e := New(Config{Bytes: limit, Jobs: 16, Observers: 512})
			quiet := func() {
				for d := range 4 {
					observe(e, tell(100, d, 1, model.DomainCommitted, 100))
				}
			}
			for range 4 {
				quiet()
			}
			for i := range n {
				o := flood(i)
				e.Observe(&o)
				require.LessOrEqual(t, e.Stats().Bytes, limit)
				if i%500 == 0 {
					quiet()
				}
			}
			assert.Equal(t, recount(e), e.Stats().Bytes, "what is counted is what is there")
			requireObservers(t, e)
			assert.Less(t, heap()-before, int64(2*limit+1<<20), "with 512 names of observers")
			quiet()
			assert.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
			late := tell(200, 0, 1, model.DomainCommitted, 200)
			late.Observer = "who came later"
			observe(e, late)
			assert.NotEqual(t, Unknown, e.Judge(testJob, testGen, 200).Verdict, "it finds room")
			runtime.KeepAlive(e)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A judgement names no more epochs than people read, those that most domains hold.
func TestJudge_ManyEpochs_NamesTheMostHeld(t *testing.T) {
	e := New(Config{})
	for i := range 3 * MaxNamed {
		o := hostile(1, long(i), "o")
		o.Epoch = model.Some(int64(max(i, 10)))
		e.Observe(&o)
	}
	j := e.Judge("hostile", "g", 1)
	assert.Equal(t, MixedEpoch, j.Verdict)
	require.Len(t, j.Held, MaxNamed)
	assert.Equal(t, int64(10), j.Held[0].Epoch)
	assert.Equal(t, 11, j.Held[0].Count)
}

func TestRestore_Bytes_AreCounted(t *testing.T) {
	e := New(Config{})
	for i := range 300 {
		o := hostile(int64(i%7), long(i%100), long(i%30))
		e.Observe(&o)
	}
	data, err := e.Snapshot()
	require.NoError(t, err)
	again := New(Config{})
	require.NoError(t, again.Restore(data))
	assert.Equal(t, recount(again), again.Stats().Bytes)
}

// An observer may watch many jobs: that one of them makes room changes nothing about the others.
func TestEngine_JobThatLeaves_KeepsWhatItsObserversSayOfOthers(t *testing.T) {
	e := New(Config{Jobs: 8, Observers: 8})
	shared := func(o model.EpochObservation) {
		o.Observer = "shared"
		e.Observe(&o)
	}
	other := func(i int) model.EpochObservation {
		o := hostile(1, "d", "of job "+strconv.Itoa(i))
		o.JobID = o.Observer
		return o
	}
	shared(other(0))
	for range 4 {
		for d := range 4 {
			shared(tell(100, d, 1, model.DomainCommitted, 100))
		}
	}
	for i := range 40 {
		o := other(i)
		e.Observe(&o)
	}
	assert.Len(t, e.jobs, 8)
	assert.Len(t, e.names, 8)
	assert.Zero(t, e.Stats().Overflowed, "an observer of a job that has left makes room")
	assert.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
}

// Sweeping walks all registers: where an observer of a job that has left can make room, nothing is swept.
func TestEngine_NewObserversOfNewJobs_SweepNothing(t *testing.T) {
	e := New(Config{Jobs: 4, Observers: 8})
	for range 10 {
		observe(e, tell(100, 0, 1, model.DomainCommitted, 100))
	}
	e.Forget(tell(100, 0, 1, model.DomainCommitted).Observer)
	for i := range 40 {
		o := hostile(1, "d", "of job "+strconv.Itoa(i))
		o.JobID = o.Observer
		e.Observe(&o)
	}
	assert.Equal(t, 1, e.find(testJob, testGen).registers)
}

// All saves of a generation have one text of a kind, which counts once. So it is after a restart.
func TestEngine_KindsOfSaves_AreOneText(t *testing.T) {
	e := New(Config{})
	for save := range int64(3) {
		o := hostile(save, "d", "o")
		o.Domain.Kind, o.Of = model.DomainKind(strings.Clone("kind")), 1
		e.Observe(&o)
	}
	data, err := e.Snapshot()
	require.NoError(t, err)
	restored := New(Config{})
	require.NoError(t, restored.Restore(data))
	for _, e := range []*Engine{e, restored} {
		g := e.find("hostile", "g")
		require.Len(t, g.saves, 3)
		for _, s := range g.saves {
			require.Len(t, s.of, 1)
			for kind := range s.of {
				assert.Same(t, unsafe.StringData(string(g.domains[0].Kind)), unsafe.StringData(string(kind)))
			}
		}
	}
}
