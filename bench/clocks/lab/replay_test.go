// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A recording, judged once more by the same code, gives the same figures.
func TestReplayGivesTheSame(t *testing.T) {
	l := &lab{options: options{folder: filepath.Join(t.TempDir(), "new")}}
	s, nodes := &scenario{name: "some  rate, 10/s", rate: 10, k: 1}, twoNodes()
	rec, err := l.record(s, nodes)
	require.NoError(t, err)
	j := newJudge(nodes, s)
	own, peer := plan.RawClock("n0"), plan.RawClock("n1")
	var fed [][4]int64
	e := pair.New(pair.Config{Record: func(in pair.Input) {
		fed = append(fed, [4]int64{int64(in.Kind), in.A, in.B, in.Width})
	}})
	rng := rand.New(rand.NewPCG(1, 1))
	for w := range int64(20) {
		for k := range int64(20) {
			at := 20*second + w*2*second + k*second/10
			there, back := at+rng.Int64N(5000), at+20_000
			e.Upper(at, there+j.offset(t, there), 1)
			e.Lower(back+rng.Int64N(5000), back+j.offset(t, back), 1)
		}
		r := plan.Report{Node: "n0", Fed: []plan.Fed{{Own: own, Peer: peer, Fresh: w == 0}}}
		for _, est := range e.Close(20*second + (w+1)*2*second) {
			r.Edges = append(r.Edges, est.Edge(own, peer, model.EdgeProbe, model.StampKernel))
		}
		r.Fed[0].Inputs, fed = fed, nil
		count := w > 5
		rec.write(entry{Report: &r, Count: count})
		rec.write(entry{Solve: true, Count: count})
		j.take(r, count)
		j.solve(count)
	}
	require.NoError(t, rec.close())
	require.Greater(t, j.f.edges.checked, 20)
	require.Positive(t, j.f.raw.checked)

	file := filepath.Join(l.folder, "some_rate_10_per_s.jsonl.gz")
	p := player{estimators: map[[2]string]*pair.Estimator{}, stamps: map[[2]string]string{}}
	require.NoError(t, readRecording(file, p.take))
	for _, f := range []*found{&j.f, &p.judge.f} {
		f.load = load{}
	}
	assert.Equal(t, j.f, p.judge.f)

	var out bytes.Buffer
	require.ErrorContains(t, replay([]string{file}, &out), "missed 2", "no bounds of the hosts' own clocks")
	assert.Contains(t, out.String(), "some  rate, 10/s, 14 windows")
	assert.Contains(t, out.String(), "holds in 100.00 %")
}

// offset is n1's reading less n0's when n0 reads at.
func (j *judge) offset(t *testing.T, at int64) int64 {
	t.Helper()
	o, ok := j.truth.offset(plan.RawClock("n0"), plan.RawClock("n1"), at)
	require.True(t, ok)
	return o
}

// What does not fit is left out, and said.
func TestRecordingIsBounded(t *testing.T) {
	l := &lab{options: options{folder: t.TempDir()}}
	rec, err := l.record(&scenario{name: "full"}, twoNodes())
	require.NoError(t, err)
	rec.room = 10
	rec.write(entry{Solve: true, Count: true})
	rec.write(entry{Solve: true})
	assert.ErrorIs(t, rec.close(), errRecordingFull)
}

func TestReplayOfWhatIsNoRecording(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none")
	require.NoError(t, os.WriteFile(name, []byte("{}"), 0o600))
	assert.ErrorContains(t, replay([]string{name}, &bytes.Buffer{}), "open recording")
	assert.ErrorContains(t, replay([]string{name + "x"}, &bytes.Buffer{}), "open recording")
	l := &lab{options: options{folder: filepath.Dir(name)}}
	rec, err := l.record(&scenario{name: "empty"}, nil)
	require.NoError(t, err)
	require.NoError(t, rec.close())
	assert.ErrorContains(t, replay([]string{filepath.Join(l.folder, "empty.jsonl.gz")}, &bytes.Buffer{}), "before the scenario")
	assert.ErrorContains(t, replay(nil, &bytes.Buffer{}), "want one")
}
