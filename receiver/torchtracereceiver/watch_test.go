// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/intake"
	"github.com/lockstep-otel/lockstep/internal/replay"
)

func TestTrackerReadsEachStableVersionOnce(t *testing.T) {
	early := time.Unix(100, 0)
	late := early.Add(time.Second)
	small, big, rewritten := version{10, early}, version{20, late}, version{20, late.Add(1)}
	var tr tracker
	for i, poll := range []struct {
		versions    map[string]version
		ready, gone []string
	}{
		{versions: map[string]version{"a": small}},
		{versions: map[string]version{"a": big}}, // it grew: not ready
		{versions: map[string]version{"a": big, "b": small}, ready: []string{"a"}},
		{versions: map[string]version{"a": big, "b": small}, ready: []string{"b"}},
		{versions: map[string]version{"a": big, "b": small}}, // nothing new
		{versions: map[string]version{"a": rewritten, "b": small}},
		{versions: map[string]version{"a": rewritten, "b": small}, ready: []string{"a"}}, // same size, other content
		{versions: map[string]version{"b": small}, gone: []string{"a"}},
		{versions: map[string]version{"a": rewritten, "b": small}}, // it came back: a new file
		{versions: map[string]version{"a": rewritten, "b": small}, ready: []string{"a"}},
		{versions: map[string]version{}, gone: []string{"a", "b"}},
	} {
		var found []string
		for _, path := range []string{"a", "b"} {
			if _, ok := poll.versions[path]; ok {
				found = append(found, path)
			}
		}
		ready, gone := tr.due(found, poll.versions)
		assert.Equal(t, poll.ready, ready, "poll %d", i)
		assert.ElementsMatch(t, poll.gone, gone, "poll %d", i)
		assert.Len(t, tr.files, len(found), "no more is remembered than was found")
	}
}

func TestTrackerKeepsTheOrder(t *testing.T) {
	var tr tracker
	versions := map[string]version{"r2": {}, "r10": {}, "r1": {}}
	found := []string{"r1", "r2", "r10"}
	for path := range versions {
		versions[path] = version{size: 1}
	}
	tr.due(found, versions)
	ready, _ := tr.due(found, versions)
	assert.Equal(t, found, ready)
}

func watching(include string) *Config {
	cfg := config(include)
	cfg.Mode, cfg.PollInterval = modeWatch, 10*time.Millisecond
	return cfg
}

func eventually(t *testing.T, condition func() bool, message string) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, message)
}

// The polls are driven by hand: how long a writer pauses is not for a test to
// guess.
func TestWatchReadsAFileOnceItHasStoppedGrowing(t *testing.T) {
	dir := t.TempDir()
	content, err := os.ReadFile(recorded(t, 0))
	require.NoError(t, err)
	var sink consumertest.TracesSink
	b := build(t, watching(dir), &sink)
	w := &watcher{reader: b.reader, status: newStatus(b.host, b.reader.log)}
	w.poll(t.Context())
	assert.Empty(t, b.host.statuses(), "an empty folder is no fault")
	assert.True(t, b.said("No trace could be read yet", dir))

	f, err := os.Create(filepath.Join(dir, "rank0.json.gz"))
	require.NoError(t, err)
	const pieces = 5
	for i := range pieces {
		_, err = f.Write(content[i*len(content)/pieces : (i+1)*len(content)/pieces])
		require.NoError(t, err)
		w.poll(t.Context())
	}
	require.NoError(t, f.Close())
	assert.Zero(t, sink.SpanCount(), "it grew from poll to poll")

	w.poll(t.Context())
	ranks := received(t, &sink)
	assert.Equal(t, recordedCollectives, countOps(ranks[0].Ops, isCollective))
	w.poll(t.Context())
	assert.Len(t, ranks[0].Ops, sink.SpanCount(), "it is read once")
	assert.EqualValues(t, 1, b.counter(t, "files_read"))
	assert.Zero(t, b.counter(t, "files_failed"))
}

func TestWatch_MissingFolder_IsReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	b := build(t, watching(dir), consumertest.NewNop())
	w := &watcher{reader: b.reader, status: newStatus(b.host, b.reader.log)}
	w.poll(t.Context())
	w.poll(t.Context())
	require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, b.host.statuses())
	assert.Equal(t, "read "+dir+": no such file or directory; create it, or remove it from the configuration", b.host.lastError())
	require.NoError(t, os.Mkdir(dir, 0o700))
	w.poll(t.Context())
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, b.host.statuses())
}

func TestWatchReadsFurtherFiles(t *testing.T) {
	replay.Reset()
	t.Cleanup(replay.Reset)
	dir := copyFiles(t, map[string]string{"rank0.json.gz": recorded(t, 0)})
	var sink consumertest.TracesSink
	b := start(t, watching(dir), &sink)
	eventually(t, func() bool { return b.counter(t, "files_read") == 1 }, "what is there is read")
	content, err := os.ReadFile(recorded(t, 1))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), content, 0o644))
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "rank1.json.gz")))
	eventually(t, func() bool { return b.counter(t, "files_read") == 2 }, "what comes is read")
	assert.Len(t, received(t, &sink), 2)
	assert.False(t, replayOver(), "watching does not end by itself")
	assert.Empty(t, replay.Pending())
}

func TestWatchReadsANewVersion(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rank0.json")
	require.NoError(t, os.WriteFile(path, []byte(oneKernel[:len(oneKernel)-2]), 0o644))
	var sink consumertest.TracesSink
	b := start(t, watching(dir), &sink)
	eventually(t, func() bool { return b.counter(t, "files_failed", string(intake.Damaged)) == 1 }, "a file that is cut off is left out")
	assert.Zero(t, sink.SpanCount())

	require.NoError(t, os.WriteFile(path, []byte(oneKernel), 0o644))
	eventually(t, func() bool { return b.counter(t, "files_read") == 1 }, "its mended version is read")
	require.NoError(t, b.Shutdown(t.Context()))
	assert.EqualValues(t, 1, b.counter(t, "files_failed"), "each version is read once")
}

func TestWatchForgetsWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	var sink consumertest.TracesSink
	b := start(t, watching(dir), &sink)
	eventually(t, func() bool { return b.counter(t, "problems") == 1 }, "the folder is empty")
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprintf("rank0_%d.json", i))
		require.NoError(t, os.WriteFile(path, []byte(oneKernel), 0o644))
		eventually(t, func() bool { return b.counter(t, "files_read") == int64(i+1) }, "the claim of the file before is gone with it")
		require.NoError(t, os.Remove(path))
		// A poll must see it gone before the next one comes.
		eventually(t, func() bool { return b.counter(t, "problems") == int64(i+2) }, "the folder is empty again")
	}
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Zero(t, b.counter(t, "files_failed"))
}

func TestWatchSaysAProblemOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var sink consumertest.TracesSink
		b := start(t, watching(filepath.Join(dir, "*.json")), &sink)
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, b.Shutdown(t.Context()))
		assert.LessOrEqual(t, b.logs.Len(), 2, "ten polls, one problem and one status")
		assert.EqualValues(t, 1, b.counter(t, "problems"))
	})
}
