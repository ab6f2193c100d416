// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestReadable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rank[0].json")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	there := []string{dir, filepath.Join(dir, "empty"), file, filepath.Join(dir, "*.json"), filepath.Join(dir, "node-*", "logs"), "*"}
	require.NoError(t, Readable(there...))
	for path, missing := range map[string]string{
		filepath.Join(dir, "absent"):              filepath.Join(dir, "absent"),
		filepath.Join(dir, "absent", "*.json"):    filepath.Join(dir, "absent"),
		filepath.Join(dir, "absent", "a*", "b?c"): filepath.Join(dir, "absent"),
	} {
		err := Readable(append(there, path)...)
		require.EqualError(t, err, "read "+missing+": no such file or directory; create it, or remove it from the configuration")
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.ErrorContains(t, Readable(filepath.Join(file, "below")), "not a directory")
}

func TestExplain(t *testing.T) {
	require.NoError(t, Explain("/x", nil))
	denied := &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}
	require.EqualError(t, Explain("/x", denied), fmt.Sprintf("read /x: permission denied; let user %d read it and search the directories above it", os.Geteuid()))
	require.EqualError(t, Explain("/x", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EIO}), "read /x: input/output error")
}

type host struct {
	component.Host

	events []*componentstatus.Event
}

func (h *host) Report(e *componentstatus.Event) { h.events = append(h.events, e) }

func TestStatusReportsChanges(t *testing.T) {
	var h host
	var s Status
	s.Start(&h)
	one, two := errors.New("read /one: gone"), errors.New("read /two: gone")
	s.Set("1", nil)
	require.Empty(t, h.events, "it was well")
	for i, step := range []struct {
		part   string
		err    error
		status componentstatus.Status
		want   string
	}{
		{"2", two, componentstatus.StatusRecoverableError, "read /two: gone"},
		{"1", one, componentstatus.StatusRecoverableError, "read /one: gone\nread /two: gone"},
		{"2", nil, componentstatus.StatusRecoverableError, "read /one: gone"},
		{"1", nil, componentstatus.StatusOK, ""},
	} {
		s.Set(step.part, step.err)
		s.Set(step.part, step.err) // once more changes nothing
		require.Len(t, h.events, i+1)
		assert.Equal(t, step.status, h.events[i].Status())
		if step.want != "" {
			assert.EqualError(t, h.events[i].Err(), step.want)
		}
	}
	new(Status).Set("1", one) // without a host
}

func TestReadable_SeveralAreMissing_NamesEachOnce(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	const tail = ": no such file or directory; create it, or remove it from the configuration"
	require.EqualError(t, Readable(one, dir, two, filepath.Join(one, "*.json")), "read "+one+tail+"\nread "+two+tail)
	many := make([]string, 100)
	for i := range many {
		many[i] = filepath.Join(dir, strconv.Itoa(i))
	}
	lines := strings.Split(Readable(many...).Error(), "\n")
	require.Len(t, lines, 65)
	require.Equal(t, "more than 64 paths cannot be read; the others are not named", lines[64])
}

func TestStatus_SeveralAreMissing_LogsEachOnce(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	var h host
	var s Status
	s.Start(&h)
	s.LogTo(zap.New(core))
	one, two := errors.New("read /one: gone"), errors.New("read /two: gone")
	for range 3 {
		s.Set("include", errors.Join(one, two))
	}
	s.Set("include", one)
	s.Set("include", errors.Join(one, two)) // it is gone again
	var got []any
	for _, e := range logs.All() {
		got = append(got, e.ContextMap()["error"])
	}
	assert.Equal(t, []any{"read /one: gone", "read /two: gone", "read /two: gone"}, got)
}
