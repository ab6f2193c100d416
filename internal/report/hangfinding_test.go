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
	require.NoError(t, Finding(&out, &f, "Finding 1", Style{}))
	said := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Finding 1: rank 9 on node3: desync (not_scheduled), cause dataloader: has not entered all_reduce 812 of TENSOR; 3 ranks wait for it, 12 more through others; since 14:03:12 UTC (confidence 0.95)",
		"place rank 9 on node3, not_scheduled",
		"cause dataloader",
		"operation all_reduce 812, TENSOR, 0xaa",
		"who waits ranks 8, 10 and 11 wait for it themselves; 12 more through others",
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
	require.NoError(t, Finding(&out, &f, "Finding 1", Style{}))
	said := out.String()
	assert.Contains(t, said, "does not decide between ranks 3 and 4")
	assert.Contains(t, said, "evidence      no JSON", "what is not of the known shape is shown as it is")
	assert.NotContains(t, said, "\x1b")
	for _, label := range []string{"since", "stall limit", "who waits", "cause", "call stack", "what to do"} {
		assert.NotContains(t, said, "\n  "+label)
	}
}

func TestSpans(t *testing.T) {
	assert.Empty(t, Spans(nil))
	assert.Equal(t, "0-2, 5, 7-9", Spans([]int64{0, 1, 2, 5, 7, 8, 9}))
	var odd []int64
	for i := range int64(20) {
		odd = append(odd, 2*i)
	}
	assert.Equal(t, "0, 2, 4 and 17 more", SpansAtMost(odd, 3))
	assert.Equal(t, "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 8 more", Spans(odd))
	assert.Equal(t, "ranks 0-2 and 97 more", SpansOf([]int64{0, 1, 2}, model.Some[int64](100)))
	assert.Equal(t, "rank 7", SpansOf([]int64{7}, model.Optional[int64]{}))
}

func TestHangEvidenceInWords(t *testing.T) {
	lines := func(text string) []string { return HangEvidence(&model.Finding{Evidence: evidence.FromText(text)}) }
	assert.Equal(t, []string{
		"1,024 members (as far as recorded): 1,000 in it, 3 through, 20 not come, 1 unknown", "most called all_reduce; who differs called all_gather",
		"the members send 8 elements and expect 9 elements", "behind the others by 2 operations", "witness: mlx5_0 is down",
		"all_reduce 6 of tp: entered by [0] (1)", "a note", "another",
	}, lines(`{"members":1024,"members_in_it":1000,"members_through":3,"members_not_come":20,"members_unknown":1,"members_inferred":true,
		"most_called":"all_reduce","called":"all_gather","elements_sent":8,"elements_received":9,"behind_operations":2,"witness":"mlx5_0 is down",
		"order":["all_reduce 6 of tp: entered by [0] (1)"],"notes":["a note","another"]}`))
	tie := HangEvidence(&model.Finding{Ranks: []int64{3, 4}, Evidence: evidence.Text(`{"members":2,"most_called":"all_reduce","called":"all_gather"}`)})
	assert.Equal(t, []string{"2 members", "some called all_reduce, some all_gather"}, tie)
	assert.Equal(t, []string{"2 members"}, lines(`{"members":2,"ranks_seen":4}`))
	assert.Empty(t, lines(`{"ranks_seen":4}`))
	assert.Equal(t, []string{"no JSON"}, lines("no JSON"))
}
