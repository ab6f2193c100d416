// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func doubted(t *testing.T, text string, d desync.Doubt) *desync.Report {
	t.Helper()
	c := statetest.Read(t, text)
	a := desync.New(desync.NewDefaultConfig())
	a.SetJob(desync.Job{WorldSize: c.WorldSize})
	for i := range c.States {
		a.Add(&c.States[i])
	}
	a.SetDoubt(d)
	return a.Conclude(0)
}

// Where a job may run, what it shows for a moment is undecided; what no job shows that runs is
// told all the same.
func TestDoubt(t *testing.T) {
	late := desync.Doubt{Why: "it was written late", Until: 15 * time.Second}
	const waiting = `
		group W 0-3
		rank 0-2: W ar 42
		rank 3: W ar 41 done`
	rep := doubted(t, waiting, late)
	require.Equal(t, desync.Undecided, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, model.ClassIncompleteEvidence, f.Class)
	assert.Equal(t, []int64{3}, f.Candidates)
	assert.Empty(t, f.Ranks)
	assert.Zero(t, f.Confidence)
	assert.Contains(t, evidence.Encode(f.Evidence), late.Why)
	assert.Equal(t, late.Why, rep.MayRun)
	rep = doubted(t, "group W 0-3 gloo\nrank 0-3: W ar 42", late) // undecided anyway
	assert.Equal(t, late.Why, rep.MayRun)

	rep = doubted(t, waiting, desync.Doubt{})
	assert.Equal(t, []string{"not_scheduled 3: all_reduce 42 of W; 0-2 wait"}, said(rep))
	rep = doubted(t, `
		group W 0-3
		rank 0-2: W ar 42
		rank 3: W bc 42`, late)
	assert.Equal(t, []string{"mismatch_op 3: all_reduce 42 of W; 0-2 wait"}, said(rep))
	assert.Empty(t, rep.MayRun)
}

// Messages to one another are what a job that runs shows, too, where nothing shows when its states
// were taken: a send may end before it is received. No job that runs enters collectives in two orders.
func TestCircleWithoutTimes(t *testing.T) {
	lost := desync.Doubt{TimesLost: "the times are lost"}
	for name, text := range map[string]string{
		"messages to one another": `
			group P 0,1
			rank 0: P send>1; P recv<1
			rank 1: P send>0; P recv<0`,
		"messages in a ring": `
			group P 0-2
			rank 0: P send>1; P recv<2
			rank 1: P send>2; P recv<0
			rank 2: P send>0; P recv<1`,
	} {
		rep := doubted(t, text, lost)
		assert.Equal(t, desync.Undecided, rep.Verdict, name)
		assert.Equal(t, lost.TimesLost, rep.MayRun, name)
		assert.Empty(t, accused(rep), name)
		assert.Equal(t, desync.Hang, doubted(t, text, desync.Doubt{TimesLost: lost.TimesLost, Hung: true}).Verdict, name)
		assert.Equal(t, desync.Hang, doubted(t, text, desync.Doubt{}).Verdict, name)
	}
	for _, text := range []string{"rank 0: A ar 1\nrank 1: B ar 1", "rank 0: A ar 1; B ar 1\nrank 1: B ar 1; A ar 1"} {
		assert.Equal(t, desync.Hang, doubted(t, "group A 0,1\ngroup B 0,1\n"+text, lost).Verdict, text)
	}
}

// Who called something a minute after what it has open stands in that for a minute.
func TestDoubtEndsWithLaterCalls(t *testing.T) {
	for apart, verdict := range map[time.Duration]desync.Verdict{14 * time.Second: desync.Undecided, time.Minute: desync.Hang} {
		c := statetest.Read(t, `
			group W 0-1
			rank 0: W ar 42; W ar 43
			rank 1: W ar 41 done`)
		a := desync.New(desync.NewDefaultConfig())
		for i := range c.States {
			s := &c.States[i]
			s.LastEnqueue = 1e12
			for k := range s.Ops {
				s.Ops[k].Created = s.LastEnqueue - int64(len(s.Ops)-1-k)*apart.Nanoseconds()
			}
			a.Add(s)
		}
		a.SetDoubt(desync.Doubt{Why: "it was written late", Until: 15 * time.Second})
		assert.Equal(t, verdict, a.Conclude(0).Verdict, apart)
	}
}

func TestDoubtEndsWithTime(t *testing.T) {
	for age, verdict := range map[time.Duration]desync.Verdict{time.Second: desync.Healthy, 14 * time.Second: desync.Undecided, 15 * time.Second: desync.Hang} {
		c := statetest.Read(t, `
			group W 0-1
			rank 0: W ar 42
			rank 1: W ar 41 done`)
		a := desync.New(desync.NewDefaultConfig())
		for i := range c.States {
			s := &c.States[i]
			s.Time = 1e12
			for k := range s.Ops {
				s.Ops[k].Created = s.Time - age.Nanoseconds()
			}
			a.Add(s)
		}
		a.SetDoubt(desync.Doubt{Why: "it pauses for as long", Until: 15 * time.Second})
		assert.Equal(t, verdict, a.Conclude(0).Verdict, age)
	}
}

// Where the host of who is in no operation is says more than its last call.
func TestStackOfWhoIsInNoOperation(t *testing.T) {
	c := statetest.Read(t, `
		group W 0-3
		rank 0-2: W ar 42 stack=train.py:20
		rank 3: W ar 41 done stack=train.py:20`)
	for i := range c.States {
		c.States[i].HostStack = "read (data.py:7)"
	}
	rep := judge(c, desync.NewDefaultConfig(), 0)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, "read (data.py:7)", rep.Roots[0].Finding.Stack)
}

// The states of a job that runs are not of one instant: where nothing tells when they were taken,
// several devices that seem to be late are no evidence, while one is less.
func TestManyLateAtOnce(t *testing.T) {
	text := func(flags string) string {
		return "group W 0-7\nrank 0-3" + flags + ": W ar 40 done; W ar 41 done at=10; W ar 42 at=11\n" +
			"rank 4-7" + flags + ": W ar 40 done; W ar 41 at=10; W ar 42 at=11"
	}
	several := conclude(t, text(""))
	assert.Equal(t, desync.Undecided, several.Verdict)
	assert.Contains(t, several.MayRun, "the devices of 4 ranks seem to be late")
	require.Len(t, several.Roots, 1)
	assert.Empty(t, several.Roots[0].Finding.Ranks)
	assert.Subset(t, several.Roots[0].Finding.Candidates, []int64{4, 5, 6, 7})

	timed := conclude(t, text(" {t=700}"))
	assert.Equal(t, desync.Hang, timed.Verdict)
	assert.Empty(t, timed.MayRun)
	require.Len(t, timed.Roots, 1)
	assert.Equal(t, []int64{4, 5, 6, 7}, timed.Roots[0].Finding.Ranks)

	// What a rank enqueued later shows that it waits for longer than states are apart.
	stood := conclude(t, "group W 0-7\ngroup P 0-3\nrank 0-3: W ar 40 done; W ar 41 done at=10; W ar 42 at=11; P ar 7 at=90\nrank 4-7: W ar 40 done; W ar 41 at=10; W ar 42 at=11")
	assert.Equal(t, desync.Hang, stood.Verdict, "%v", stood.MayRun)

	one := conclude(t, "group W 0-7\nrank 0-6: W ar 40 done; W ar 41 done; W ar 42\nrank 7: W ar 40 done; W ar 41; W ar 42")
	assert.Equal(t, desync.Hang, one.Verdict)
	require.Len(t, one.Roots, 1)
	assert.Equal(t, []int64{7}, one.Roots[0].Finding.Ranks)
}
