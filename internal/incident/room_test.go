// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

var padding = strings.Repeat("x", 100_000)

// ranks and links are lists of 100,000 elements.
var ranks, links = make([]int64, 100_000), make([]model.SpanRef, 100_000)

// hostile is a valid finding with new texts of 4 kB and 100 kB, and long lists.
func hostile(i int, job string) model.Finding {
	name, text := strconv.Itoa(i)+padding[:4000], strconv.Itoa(i)+padding
	return model.Finding{
		ID: name, Revision: 1, Kind: name, Class: name, JobID: job, JobName: name, Host: name, Op: name, Link: name, Stack: text,
		Evidence: evidence.Text(`{"a":"` + text + `"}`), Action: text, Ranks: ranks, Waiting: ranks, Candidates: ranks, Links: links,
		Start: int64(i), Time: int64(i), Status: model.StatusOpen,
	}
}

func TestEngine_LongFindings_AreCut(t *testing.T) {
	e := engine(nil)
	ev := e.Add(hostile(1, "job"), t0)
	require.Len(t, ev, 1)
	f := ev[0].Finding
	assert.Less(t, f.Bytes(), 260<<10)
	assert.Len(t, f.ID, 1024)
	assert.Len(t, f.Evidence, 64<<10)
	assert.Len(t, f.Ranks, 64)
	assert.Equal(t, model.Some(int64(100_000)), f.RanksCount, "how many there are is not lost")
	assert.Equal(t, int64(1), e.Stats().Cut)

	f = received("short", 1, 1, 0, 1)
	e.Add(f, t0)
	assert.Equal(t, int64(1), e.Stats().Cut)
}

// recount walks what an engine holds.
func recount(e *Engine) (bytes int) {
	for _, n := range known(e) {
		bytes += n.Finding.Bytes() + entryBytes
	}
	return bytes
}

// Whatever findings flood an engine, it keeps to its bytes, and another job's finding stays open.
func TestEngine_FloodOfFindings_StaysWithinBytesAndKeepsOthers(t *testing.T) {
	const limit = 1 << 20
	for name, send := range map[string]func(e *Engine, i int){
		"new findings of one job":  func(e *Engine, i int) { e.Add(hostile(i, "hostile"), t0) },
		"closed findings of a job": func(e *Engine, i int) { f := hostile(i, "hostile"); f.Status = model.StatusClosed; e.Add(f, t0) },
		"new jobs":                 func(e *Engine, i int) { e.Add(hostile(i, strconv.Itoa(i)+padding[:4000]), t0) },
		"new jobs of ever larger findings": func(e *Engine, i int) {
			f := hostile(i, strconv.Itoa(i))
			f.Evidence = evidence.Text(strings.Repeat("e", 40_000+100*i))
			e.Add(f, t0)
		},
		"revisions of few findings": func(e *Engine, i int) {
			f := hostile(i%8, "hostile")
			f.Revision, f.Evidence = int64(i+1), evidence.Text(strings.Repeat("e", 1000*(i%64)))
			e.Add(f, t0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(func(c *Config) { c.MaxBytes = limit })
			before := heap()
			require.Equal(t, []string{"quiet 1 open+"}, said(e.Add(received("quiet", 1, 3, 0, 10), t0)))
			for i := range 30 {
				send(e, i)
				require.LessOrEqual(t, e.Bytes(), limit)
				if i%10 == 0 {
					e.Add(received("quiet", 1, 3, 0, 10), t0)
				}
			}
			assert.Equal(t, recount(e), e.Bytes())
			assert.Less(t, heap()-before, int64(2*limit))
			assert.Equal(t, []string{"quiet 2 updated"}, said(e.Add(received("quiet", 2, 3, 0, 11), t0)))
			assert.Equal(t, []string{"quiet 3 closed."}, said(e.Add(closed("quiet", 3), t0)))
			e.Tick(t0.Add(time.Hour))
			assert.Equal(t, recount(e), e.Bytes())
			runtime.KeepAlive(e)
		})
	}
}

func closed(id string, rev int64) model.Finding {
	f := received(id, rev, 3, 0, 12)
	f.Status = model.StatusClosed
	return f
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A job that opens findings without end closes its own: those of others stay.
func TestEngine_TooManyFindingsOfAJob_CloseTheirOwn(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 64 })
	e.Add(received("quiet", 1, 3, 0, 10), t0)
	for i := range 1000 {
		f := received(fmt.Sprint(i), 1, 3, 0, 10)
		f.JobID = "loud"
		e.Add(f, t0)
	}
	assert.Equal(t, 64, e.Open())
	assert.True(t, known(e)[key{"job", "quiet"}].IsOpen())
	assert.Equal(t, int64(1000-63), e.Stats().Evicted)
	assert.Equal(t, int64(1000-63-64), e.Stats().Forgotten)

	e.Flush()
	assert.Equal(t, recount(e), e.Bytes())
	assert.Len(t, known(e), 64, "closed ones are remembered")
}

// New jobs that open one finding each close those of new jobs: one that was heard often stays.
func TestEngine_FindingsOfManyNewJobs_KeepThoseOfASettledJob(t *testing.T) {
	for name, revision := range map[string]func(i int) int64{
		"revised":  func(i int) int64 { return int64(i) },
		"repeated": func(int) int64 { return 1 },
	} {
		for _, status := range []string{model.StatusOpen, model.StatusClosed} {
			t.Run(name+", "+status, func(t *testing.T) {
				e := engine(func(c *Config) { c.MaxOpen = 64 })
				for i := 1; i < 20; i++ {
					e.Add(received("settled", revision(i), 3, 0, 10), t0)
				}
				last := received("settled", 20, 3, 0, 10)
				last.Status = status
				require.NotEmpty(t, e.Add(last, t0))
				for i := range 200 {
					f := received(fmt.Sprint(i), 1, 3, 0, 10)
					f.JobID, f.Status = fmt.Sprint("job ", i), status
					e.Add(f, t0.Add(time.Second))
				}
				require.NotNil(t, known(e)[key{"job", "settled"}])
				assert.Equal(t, status == model.StatusClosed, !known(e)[key{"job", "settled"}].IsOpen())
			})
		}
	}
}

// Many new jobs that hold more together do not close the findings of a large one that is heard and holds a
// quarter of all.
func TestEngine_FindingsOfManyNewJobs_KeepThoseOfALargeJob(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 64 })
	large := func() {
		for i := range 16 {
			e.Add(received(fmt.Sprint("large ", i), 1, 3, 0, 10), t0)
		}
	}
	large()
	for i := range 200 {
		f := received(fmt.Sprint(i), 1, 3, 0, 10)
		f.JobID = fmt.Sprint("job ", i)
		e.Add(f, t0)
		large()
	}
	for i := range 16 {
		assert.True(t, known(e)[key{"job", fmt.Sprint("large ", i)}].IsOpen())
	}
}

// A job that holds almost half of all findings gives up its own for jobs that began later, down to a quarter.
func TestEngine_FindingsOfAnEarlyHoarder_MakeRoomForOthers(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 64 })
	for i := range 31 {
		f := received(fmt.Sprint(i), 1, 3, 0, 10)
		f.JobID = "hoarder"
		e.Add(f, t0)
	}
	for i := range 48 {
		f := received("f", 1, 3, 0, 10)
		f.JobID = fmt.Sprint("job ", i)
		e.Add(f, t0)
	}
	assert.Equal(t, 64, e.Open())
	assert.Equal(t, 16, e.jobs["hoarder"].open)
	for i := range 48 {
		assert.True(t, known(e)[key{fmt.Sprint("job ", i), "f"}].IsOpen(), i)
	}
}

// What another engine gets is not reported as closed here, and opens again when it comes back.
func TestForget_OneJob_DropsItsFindingsAlone(t *testing.T) {
	e := engine(nil)
	other := received("b", 1, 1, 0, 1)
	other.JobID = "other"
	e.Add(received("a", 1, 1, 0, 1), t0)
	e.Add(other, t0)
	e.Forget([]string{"job"})
	assert.Equal(t, 1, e.Open())
	assert.Equal(t, []string{"b 2 closed."}, said(e.Flush()))
	assert.Zero(t, e.Stats().Evicted, "it is no loss")
	assert.Equal(t, []string{"a 3 updated"}, said(e.Add(received("a", 3, 1, 0, 5), t0)), "open, and not new")
	assert.Equal(t, 1, e.Open())
}
