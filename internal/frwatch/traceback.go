// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

const (
	// tracebackFor bounds how long a server is waited for: it needs Python's lock, which a
	// process that hangs may hold.
	tracebackFor = 3 * time.Second
	// maxTraceback bounds the answer, bytes: PyTorch has Python write at most 100 threads of 100
	// calls each.
	maxTraceback = 4 << 20
	maxCalls     = 100
	// maxCallText bounds the name and the file of a call, bytes: Python cuts each at 500.
	maxCallText = 512
)

// Idle reports whether a rank has nothing open in its dump: what it is in, only its host tells.
func Idle(d *flightrecorder.Dump) bool {
	return !slices.ContainsFunc(d.Entries, func(e flightrecorder.Entry) bool {
		return !e.Retired && e.State != flightrecorder.Completed
	})
}

// Traceback asks a server in which calls its process's main thread is, innermost first, one a
// line; empty where the answer does not say.
func (p *Puller) Traceback(ctx context.Context, e *Endpoint) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tracebackFor)
	defer cancel()
	body, err := p.do(ctx, http.MethodPost, e.URL+"/handler/dump_traceback", maxTraceback)
	if err != nil {
		return "", fmt.Errorf("ask where a process is: %w", err)
	}
	return mainThread(string(body)), nil
}

// mainThread returns the calls of the last thread that Python's faulthandler wrote: the newest is
// first, the main one last. Where it left threads out, that is not the main one.
func mainThread(text string) string {
	var calls []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "...":
			return ""
		case line != "" && !strings.HasPrefix(line, " "): // of another thread
			calls = calls[:0]
		case len(calls) < maxCalls:
			if c := call(line); c != "" {
				calls = append(calls, c)
			}
		}
	}
	return strings.Join(calls, "\n")
}

// call reads `  File "train.py", line 8 in fetch`; empty where a line is none.
func call(line string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), `File "`)
	at := strings.LastIndex(rest, `", line `)
	if !ok || at < 0 {
		return ""
	}
	number, name, ok := strings.Cut(rest[at+len(`", line `):], " in ")
	if n, err := strconv.ParseUint(number, 10, 32); !ok || err != nil || n == 0 {
		return ""
	}
	clip := func(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxCallText)], "") }
	return clip(name) + " (" + clip(rest[:at]) + ":" + number + ")"
}
