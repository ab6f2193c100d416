// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

var begin = time.Unix(1_760_000_000, 0)

func after(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }

func megatron(rank int) string {
	return fmt.Sprintf("WARNING: on rank %d found iteration 1500 in the metadata while max iteration across the ranks is 2000, replacing it with max iteration.", rank)
}

const nvml = "Failed to initialize NVML: Driver/library version mismatch"

func evidenceOf(f model.Finding) *evidence.LogLine {
	ev, _ := evidence.As[evidence.LogLine](f.Evidence)
	return ev
}

func TestLinesOfAJobAreOneFinding(t *testing.T) {
	w := New(NewDefaultConfig())
	assert.False(t, w.Observe(&Line{JobID: "j", Text: "step 7"}, after(0)))
	require.True(t, w.Observe(&Line{JobID: "j", JobName: "llama", Host: "b", Text: megatron(9), Time: 5}, after(0)))
	assert.Empty(t, w.Standing(after(0)), "it was not told yet")
	require.True(t, w.Observe(&Line{JobID: "j", JobName: "llama", Host: "a", Text: megatron(3)}, after(0)))
	require.True(t, w.Observe(&Line{JobID: "other", Text: megatron(3)}, after(0)))
	out := w.Tick(after(1))
	require.Len(t, out, 2)
	f, ev := out[0], evidenceOf(out[0])
	assert.Equal(t, []any{"j", "llama", string(MegatronIteration), int64(2), int64(1), "1970-01-01T00:00:00.000000005Z", after(0).UnixNano()},
		[]any{f.JobID, f.JobName, ev.Pattern, ev.Lines, f.Revision, ev.Time, f.Start})
	assert.Equal(t, []string{"a", "b"}, ev.Hosts)
	assert.Equal(t, []int64{3, 9}, f.Ranks)
	assert.Equal(t, megatron(9), ev.Line)
	assert.Equal(t, map[string]string{"iteration": "1500", "max_iteration": "2000"}, ev.Said)

	w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(3)}, after(2))
	assert.Empty(t, w.Tick(after(2)), "one line more is nothing new")
	w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(4)}, after(3))
	out = w.Tick(after(3))
	require.Len(t, out, 1)
	assert.Equal(t, []any{int64(2), int64(4), []int64{3, 4, 9}}, []any{out[0].Revision, evidenceOf(out[0]).Lines, out[0].Ranks})
	assert.Len(t, w.Standing(after(3)), 2)

	out = w.Tick(after(15))
	require.Len(t, out, 1, "of the other job nothing came for 15 minutes")
	assert.Equal(t, []any{"other", model.StatusClosed, after(15).UnixNano()}, []any{out[0].JobID, out[0].Status, out[0].Time})
	out = w.Tick(after(18))
	require.Len(t, out, 1)
	assert.Equal(t, model.StatusClosed, out[0].Status)
	assert.Empty(t, w.Standing(after(18)))
	assert.Equal(t, Stats{Lines: 5, Opened: 2, Closed: 2}, w.Stats())
	w.Observe(&Line{JobID: "j", Text: megatron(3)}, after(19))
	assert.EqualValues(t, 1, w.Tick(after(19))[0].Revision, "another episode")
}

// What a host's driver says is of the host, whichever job's log it is in.
func TestLinesOfAHost(t *testing.T) {
	w := New(NewDefaultConfig())
	for _, l := range []Line{
		{JobID: "j", HostID: "1", Host: "a", Text: nvml},
		{JobID: "k", HostID: "1", Host: "a", Text: nvml},
		{JobID: "j", HostID: "2", Host: "a", Text: nvml},
		{HostID: "1", Text: megatron(1)},
	} {
		require.True(t, w.Observe(&l, after(0)))
	}
	out := w.Tick(after(0))
	require.Len(t, out, 3)
	for _, f := range out {
		assert.Empty(t, f.JobID)
		assert.Len(t, evidenceOf(f).Hosts, 1)
	}
	assert.Equal(t, []string{"1"}, evidenceOf(out[0]).Hosts, "without a name")
}

func TestBounds(t *testing.T) {
	w := New(Config{Silent: time.Minute, MaxEpisodes: 2})
	for i := range 3 {
		assert.True(t, w.Observe(&Line{JobID: fmt.Sprint(i), Text: megatron(1)}, after(0)))
	}
	assert.Equal(t, Stats{Lines: 3, Withheld: 1}, w.Stats())
	for i := range 2 * maxNamed {
		w.Observe(&Line{JobID: "0", Host: fmt.Sprintf("%03d", i), Text: megatron(i)}, after(0))
	}
	w.Observe(&Line{JobID: "1", Text: strings.Repeat("x\xff", maxText) + megatron(2)}, after(0))
	out := w.Tick(after(0))
	assert.Len(t, evidenceOf(out[0]).Hosts, maxNamed)
	assert.Len(t, out[0].Ranks, maxNamed)
	assert.True(t, evidenceOf(out[0]).More)
	assert.EqualValues(t, 2, w.Stats().Opened)
	w.Observe(&Line{JobID: "0", Host: "999", Text: megatron(999)}, after(0))
	assert.Empty(t, w.Tick(after(0)), "that there are more was told")

	w = New(NewDefaultConfig())
	w.Observe(&Line{JobID: "1", Text: strings.Repeat("x\xff", maxText) + megatron(2)}, after(0))
	text := evidenceOf(w.Tick(after(0))[0]).Line
	assert.LessOrEqual(t, len(text), 3*maxText)
	assert.True(t, strings.HasPrefix(text, "x\uFFFDx"))
}

// What was given out does not change when more is heard.
func TestFindingsAreCopies(t *testing.T) {
	w := New(NewDefaultConfig())
	w.Observe(&Line{JobID: "j", Host: "b", Text: megatron(9)}, after(0))
	f := w.Tick(after(0))[0]
	w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(1)}, after(0))
	assert.Equal(t, []string{"b"}, evidenceOf(f).Hosts)
	assert.Equal(t, []int64{9}, f.Ranks)
}

func TestValidate(t *testing.T) {
	good := NewDefaultConfig()
	require.NoError(t, good.Validate())
	bad := Config{}
	require.EqualError(t, bad.Validate(), "check silent: got 0s; want at least 1s\ncheck max_episodes: got 0; want at least 1")
}

// One line that can be is worth more than any that can not.
func TestLinesThatCanNotBe(t *testing.T) {
	w := New(NewDefaultConfig())
	text := "on rank 3 found iteration 9 in the metadata while max iteration across the ranks is 7, replacing it with max iteration."
	w.Observe(&Line{JobID: "j", Text: text}, after(0))
	assert.InDelta(t, absurd, w.Tick(after(0))[0].Confidence, 0)
	w.Observe(&Line{JobID: "j", Text: megatron(3)}, after(1))
	out := w.Tick(after(1))
	require.Len(t, out, 1)
	assert.Greater(t, out[0].Confidence, absurd)
	w.Observe(&Line{JobID: "j", Text: text}, after(2))
	assert.Empty(t, w.Tick(after(2)))
}
