package desync_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func doubted(t *testing.T, text string, d desync.Doubt) *desync.Report {
	t.Helper()
	c := statetest.Read(t, text)
	a := desync.New(desync.NewDefaultConfig())
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
	assert.Contains(t, f.Evidence, late.Why)
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
