// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

func TestDemoKnowsWhoHasNoRing(t *testing.T) {
	t.Setenv("LOCKSTEP_DEBUG", "")
	var out bytes.Buffer
	s := newWorkerStderr(&out)
	for rank, said := range []string{"lockstep: ring: /x\n", "lockstep: no ring: no \x1broom\n", "rank 2: is gone", "lockstep: CUPTI 130500: active, result 0\n", "lockstep: CUPTI 0: refused, result 1\n"} {
		w := &rankStderr{all: s, rank: rank}
		for _, part := range strings.SplitAfter(said, " ") {
			_, err := io.WriteString(w, part)
			require.NoError(t, err)
		}
		w.flush()
	}
	assert.Equal(t, "rank 2: is gone\nlockstep: CUPTI 0: refused, result 1\n", out.String(), "of what is as usual only who asks is told")
	assert.Equal(t, "1 of 5 ranks made no ring (rank 1): no \ufffdroom", s.unseen(5, 4))

	s = newWorkerStderr(&out)
	assert.Empty(t, s.unseen(3, 3))
	assert.Contains(t, s.unseen(3, 2), "of 1 of 3 ranks nothing was read, and why is not known; with LOCKSTEP_DEBUG=1")

	t.Setenv("LOCKSTEP_DEBUG", "1")
	out.Reset()
	_, err := newWorkerStderr(&out).of(0).Write([]byte("lockstep: ring: /x\n" + strings.Repeat("y", 2*maxStderrLine)))
	require.NoError(t, err)
	assert.Equal(t, len("lockstep: ring: /x\n")+2*maxStderrLine, out.Len(), "a line has an end")
}

func TestDemoScreenTellsNothingSeenFromNothingFound(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 4, fault: "none", level: "collectives"})
	s.summary(newTap(), "4 of 4 ranks made no ring: no room")
	assert.Contains(t, words(out.String()), "nothing could be judged: 4 of 4 ranks made no ring: no room.")
	out.Reset()
	seen := newTap()
	for rank := range int64(3) {
		seen.ranks[rankID{rank: rank}] = struct{}{}
	}
	s.summary(seen, "1 of 4 ranks made no ring: no room")
	assert.Contains(t, words(out.String()), "nothing was found among those; 1 of 4 ranks made no ring")
}

func TestDemoScreenShowsAStandstill(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 4, fault: "none"})
	s.live = true
	s.still(time.Now().Add(time.Hour))
	assert.Empty(t, out.String(), "no step yet")
	s.line(&demoLine{Step: 765})
	out.Reset()
	s.still(s.stepAt.Add(time.Second))
	assert.Empty(t, out.String())
	s.still(s.stepAt.Add(35 * time.Second))
	assert.Contains(t, out.String(), "\rstep 765 for 35 s")
	s.open("rank 3: all_reduce 41 has not ended for 2s\x1b")
	assert.Contains(t, out.String(), "\rrank 3: all_reduce 41 has not ended for 2s\ufffd.\n")
	out.Reset()
	for range 2 * maxOpens {
		s.open("no end")
	}
	assert.Equal(t, maxOpens-1, strings.Count(out.String(), "no end"))
	out.Reset()
	s.line(&demoLine{Step: 766})
	out.Reset()
	s.over = true
	s.open("rank 3: all_reduce 42 has not ended")
	assert.Empty(t, out.String())
}

func TestTapHearsOfOpenOperations(t *testing.T) {
	var said []string
	seen := newTap()
	seen.onOpen = func(s string) { said = append(said, s) }
	logs := plog.NewLogs()
	otelmap.AppendOpen(logs, &model.Rank{Rank: 3}, []model.OpenOp{{Status: model.StatusOpen}, {Status: model.StatusClosed}})
	seen.noteLogs(logs)
	require.Len(t, said, 1)
	assert.Contains(t, said[0], "rank 3: ")
}
