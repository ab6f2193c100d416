// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// feedName is the file of a feed in its folder. Its lines are as the program of collectorDir
// reads them.
const feedName = "feed.jsonl"

// feed collects requests and writes them in order of time.
type feed struct {
	path  string
	begin int64 // Unix ns of the collector's start
	lines []feedLine
	err   error
}

type feedLine struct {
	after  float64 // s
	signal string
	data   []byte // OTLP/JSON
}

func newFeed(dir string, begin int64) *feed {
	return &feed{path: filepath.Join(dir, feedName), begin: begin}
}

// line adds a request that comes at a time, Unix ns.
func (f *feed) line(at int64, signal string, data []byte, err error) {
	f.err = errors.Join(f.err, err)
	f.lines = append(f.lines, feedLine{after: float64(at-f.begin) / 1e9, signal: signal, data: data})
}

func (f *feed) logs(at int64, ld plog.Logs) {
	data, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	f.line(at, "logs", data, err)
}

func (f *feed) traces(at int64, td ptrace.Traces) {
	data, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	f.line(at, "traces", data, err)
}

func (f *feed) close() error {
	slices.SortStableFunc(f.lines, func(a, b feedLine) int { return cmp.Compare(a.after, b.after) })
	var text bytes.Buffer
	for _, l := range f.lines {
		fmt.Fprintf(&text, `{"after_seconds":%s,"signal":%q,"data":%s}`+"\n", strconv.FormatFloat(l.after, 'f', -1, 64), l.signal, l.data)
	}
	f.err = errors.Join(f.err, os.MkdirAll(filepath.Dir(f.path), 0o750))
	return wrap("write feed", errors.Join(f.err, os.WriteFile(f.path, text.Bytes(), 0o600)))
}

// feedSpans makes a feed of a compressed JSON array of trace requests, one a second.
func feedSpans(_ context.Context, from, to string) (err error) {
	file, err := os.Open(from) //nolint:gosec // a case that the user names
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpack requests: %w", err)
	}
	var requests []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&requests); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	f := newFeed(to, 0)
	for i, r := range requests {
		f.line(int64(time.Second)*int64(i+1), "traces", r, nil)
	}
	return f.close()
}
