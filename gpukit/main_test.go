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
	o := options{kit: emptyKit(t), out: filepath.Join(t.TempDir(), "new", "out"), work: t.TempDir(), python: noPython, limit: time.Minute}
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
	o := options{kit: emptyKit(t), out: t.TempDir(), work: t.TempDir(), python: noPython, limit: time.Nanosecond}
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
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no kit":            {[]string{"-kit", t.TempDir(), "-out", t.TempDir()}, "make gpu-kit"},
		"no output folder":  {[]string{"-out", ""}, "read -out: got nothing"},
		"no scratch folder": {[]string{"-kit", emptyKit(t), "-out", t.TempDir(), "-work", filepath.Join(t.TempDir(), "none")}, "make scratch folder"},
		"a file as output":  {[]string{"-kit", emptyKit(t), "-out", filepath.Join(emptyKit(t), "python", "here")}, "make output folder"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			assert.Equal(t, exitUsage, run(t.Context(), c.args, &bytes.Buffer{}, &stderr))
			assert.Contains(t, stderr.String(), c.want)
		})
	}
}

func TestRun_List(t *testing.T) {
	var out bytes.Buffer
	assert.Zero(t, run(t.Context(), []string{"-list"}, &out, &bytes.Buffer{}))
	for _, a := range part.All() {
		assert.Contains(t, out.String(), a.Title)
	}
}

func TestCheck_AnInterpreterThatWasNamed_IsAFailedCheck(t *testing.T) {
	dumb := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(dumb, []byte("#!/bin/sh\necho garbage\n"), 0o700))
	for _, named := range []string{"/nonexistent/python", dumb} {
		o := options{kit: emptyKit(t), out: t.TempDir(), work: t.TempDir(), python: named, limit: time.Minute}
		_, err := check(t.Context(), o, parts()[1:], &bytes.Buffer{})
		require.NoError(t, err)
		r := readReport(t, o.out)
		require.Len(t, r.Parts, 2)
		assert.Equal(t, "python", r.Parts[0].Checks[0].Name)
		assert.Equal(t, report.Failed, r.Parts[0].Checks[0].Status)
		assert.Equal(t, report.StandIn, r.Parts[1].Checks[0].Status, "the others run")
	}
}

func TestCheck_Interrupted_ReportsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := part.Part{Name: "first", Limit: time.Minute, Run: func(_ context.Context, _ *kit.Kit, p *report.Part) {
		p.Add("seen", report.StandIn, "")
		cancel()
	}}
	o := options{kit: emptyKit(t), out: t.TempDir(), work: t.TempDir(), python: noPython, limit: time.Minute}
	_, err := check(ctx, o, append([]part.Part{first}, parts()...), &bytes.Buffer{})
	require.ErrorContains(t, err, "interrupted")
	r := readReport(t, o.out)
	require.Len(t, r.Parts, 3)
	assert.Contains(t, r.Parts[1].Checks[0].Text, "the run was interrupted")
}

// A run that is killed leaves a report that names what is missing.
func TestCheck_WhatWasNotRunYet_IsInTheReport(t *testing.T) {
	o := options{kit: emptyKit(t), out: t.TempDir(), work: t.TempDir(), python: noPython, limit: time.Minute}
	var during []string
	look := part.Part{Name: "look", Limit: time.Minute, Run: func(context.Context, *kit.Kit, *report.Part) {
		during = readReport(t, o.out).NotRun
	}}
	_, err := check(t.Context(), o, []part.Part{look, parts()[1]}, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, []string{"look", "right"}, during)
	assert.Empty(t, readReport(t, o.out).NotRun)
	assert.Contains(t, readReport(t, o.out).LeftOut, "ranks")
}

func TestCheck_AFolderThatIsUsedAgain(t *testing.T) {
	o := options{kit: emptyKit(t), out: t.TempDir(), work: t.TempDir(), python: noPython, limit: time.Minute}
	keep := part.Part{Name: "keep", Limit: time.Minute, Run: func(_ context.Context, k *kit.Kit, p *report.Part) {
		p.Add("kept", report.StandIn, "")
		assert.NoError(t, k.Fixture("rings", kit.Entry{Name: "a"}))
		_, err := check(t.Context(), o, parts()[1:], &bytes.Buffer{})
		assert.ErrorIs(t, err, errBusy, "two runs at once")
	}}
	_, err := check(t.Context(), o, []part.Part{keep}, &bytes.Buffer{})
	require.NoError(t, err)
	other := filepath.Join(o.out, "notes.txt")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	_, err = check(t.Context(), o, parts()[1:], &bytes.Buffer{})
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(o.out, "rings.tar.gz"), "of the run before")
	aside, err := filepath.Glob(filepath.Join(o.out, "2*Z", "*"))
	require.NoError(t, err)
	assert.Len(t, aside, 4, "its report and fixtures: %v", aside)
	assert.FileExists(t, other)
}

// A report that is not the kit's, and what it names, is left alone.
func TestCheck_AFolderOfOthers_IsLeftAlone(t *testing.T) {
	out := t.TempDir()
	for name, text := range map[string]string{report.JSONName: `{"files":["precious.txt"]}`, "precious.txt": "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), []byte(text), 0o600))
	}
	for _, dir := range []string{emptyKit(t), t.TempDir()} {
		_, err := check(t.Context(), options{kit: dir, out: out, work: t.TempDir(), python: noPython, limit: time.Minute}, parts()[1:], &bytes.Buffer{})
		require.Error(t, err)
		assert.FileExists(t, filepath.Join(out, report.JSONName))
		assert.FileExists(t, filepath.Join(out, "precious.txt"))
	}
}
