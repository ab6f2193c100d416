// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/part"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// emptyKit has the files that a kit must have, and nothing in them.
func emptyKit(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bin/lockstep", "lib/libnccl-profiler-lockstep.so", "programs/machine.py", "python/here"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	return dir
}

// parts are one that is right and one that waits for ever.
func parts() []part.Part {
	return []part.Part{
		{Name: "waits", Limit: 20 * time.Millisecond, Run: func(ctx context.Context, _ *kit.Kit, p *report.Part) {
			<-ctx.Done()
			p.Add("end", report.Failed, "time limit")
		}},
		{Name: "right", Limit: time.Minute, Run: func(_ context.Context, k *kit.Kit, p *report.Part) {
			p.Add("kept", report.StandIn, k.Work)
		}},
	}
}

func readReport(t *testing.T, dir string) *report.Report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, report.JSONName))
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(text, &r))
	return &r
}

func TestCheck_APartThatFailsStopsNoOther(t *testing.T) {
	o := options{kit: emptyKit(t), out: filepath.Join(t.TempDir(), "new", "out"), work: t.TempDir(), python: "/nonexistent", limit: time.Minute}
	var out bytes.Buffer
	_, err := check(t.Context(), o, parts(), &out)
	require.NoError(t, err)
	r := readReport(t, o.out)
	require.Len(t, r.Parts, 2)
	assert.Equal(t, report.Failed, r.Parts[0].Checks[0].Status)
	assert.Equal(t, report.StandIn, r.Parts[1].Checks[0].Status)
	assert.Contains(t, r.Fact("gpu"), "no python3")
	assert.Equal(t, []string{"log.tar.gz"}, r.Files)
	left, err := os.ReadDir(o.work)
	require.NoError(t, err)
	assert.Empty(t, left, "scratch files")
}

func TestCheck_TimeForEverythingIsOver(t *testing.T) {
	o := options{kit: emptyKit(t), out: t.TempDir(), work: t.TempDir(), python: "/nonexistent", limit: time.Nanosecond}
	_, err := check(t.Context(), o, parts(), &bytes.Buffer{})
	require.NoError(t, err)
	for _, p := range readReport(t, o.out).Parts {
		require.Len(t, p.Checks, 1)
		assert.Contains(t, p.Checks[0].Text, "-only "+p.Name)
	}
}

func TestRun_Usage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown part":   {[]string{"-only", "nothing"}, `got "nothing"; want some of`},
		"an argument":    {[]string{"here"}, `got "here"; want flags only`},
		"no time at all": {[]string{"-limit", "0s"}, "want more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			assert.Equal(t, exitUsage, run(t.Context(), c.args, &bytes.Buffer{}, &stderr))
			assert.Contains(t, stderr.String(), c.want)
		})
	}
	var stderr bytes.Buffer
	assert.Equal(t, exitFailed, run(t.Context(), []string{"-kit", t.TempDir(), "-out", t.TempDir()}, &bytes.Buffer{}, &stderr))
	assert.Contains(t, stderr.String(), "make gpu-kit")
}

func TestRun_List(t *testing.T) {
	var out bytes.Buffer
	assert.Zero(t, run(t.Context(), []string{"-list"}, &out, &bytes.Buffer{}))
	for _, a := range part.All() {
		assert.Contains(t, out.String(), a.Title)
	}
}
