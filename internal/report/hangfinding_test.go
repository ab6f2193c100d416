// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestAHangIsTold(t *testing.T) {
	start := time.Date(2026, 11, 23, 14, 3, 12, 250e6, time.UTC).UnixNano()
	f := model.Finding{
		Kind: model.FindingDesync, Class: model.ClassNotScheduled, Cause: model.CauseDataLoader, Rank: model.Some(int64(9)), Host: "node3",
		Op: "all_reduce 812", CommName: "TENSOR", CommID: "0xaa", Waiting: []int64{8, 10, 11}, Through: model.Some(int64(12)),
		Start: start, Time: start + int64(4500*time.Millisecond), Confidence: 0.95, Action: "get its stack", Stack: "next (data.py:3)\nmain (train.py:9)",
		Evidence: evidence.Text(`{"stall_limit_seconds":2,"stood_seconds":4.5,"limit_of_phase":"train"}`),
	}
	var out bytes.Buffer
	require.NoError(t, HangFinding(&out, &f, "Finding 1", "rank 9 hangs", Style{}))
	said := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Finding 1: rank 9 hangs",
		"place rank 9 on node3, not_scheduled",
		"cause dataloader",
		"operation all_reduce 812, TENSOR, 0xaa",
		"who waits ranks 8, 10, 11 wait for it themselves; 12 more through others",
		"since 2026-11-23 14:03:12.250 UTC, for 4.50 s",
		"stall limit 2.00 s in phase train, by the job's own gaps; nothing had moved for 4.50 s",
		"confidence 0.95 of 1",
		"what to do get its stack",
		"call stack next (data.py:3) main (train.py:9)",
	} {
		assert.Contains(t, said, want)
	}
}

// What is not known is not said; what is hostile does not reach the terminal.
func TestAHangOfWhichLittleIsKnown(t *testing.T) {
	f := model.Finding{Kind: model.FindingDesync, Class: model.ClassIncompleteEvidence, Candidates: []int64{3, 4}, Op: "a\x1b[2Jb", Evidence: evidence.Text("no JSON")}
	var out bytes.Buffer
	require.NoError(t, HangFinding(&out, &f, "Finding 1", "it\x1b[2J hangs", Style{}))
	said := out.String()
	assert.Contains(t, said, "does not decide between ranks 3, 4")
	assert.NotContains(t, said, "\x1b")
	for _, label := range []string{"since", "stall limit", "who waits", "cause", "call stack", "what to do"} {
		assert.NotContains(t, said, "\n  "+label)
	}
}
