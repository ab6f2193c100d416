// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// host is a process's debug server that tells where its threads are.
type host struct {
	dump      atomic.Pointer[[]byte]
	taken     atomic.Int64 // when it took the last dump, Unix ns
	naming    time.Duration
	traceback func(w http.ResponseWriter)
	asked     atomic.Int64
}

func (s *host) serve(t *testing.T, d *frwrite.Dump) (url string) {
	t.Helper()
	s.holds(d)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /handler/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `["dump_nccl_trace_pickle","dump_traceback"]`)
	})
	mux.HandleFunc("POST /handler/dump_nccl_trace_pickle", func(w http.ResponseWriter, _ *http.Request) {
		s.taken.Store(time.Now().UnixNano())
		time.Sleep(s.naming)
		_, _ = w.Write(*s.dump.Load())
	})
	mux.HandleFunc("POST /handler/dump_traceback", func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		s.traceback(w)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func (s *host) holds(d *frwrite.Dump) {
	b := frwrite.Pickle(d)
	s.dump.Store(&b)
}

// A process takes its dump first, and finds the names for its stacks for seconds then, in which
// a job that runs goes on: the state is of when it was asked for.
func TestPulledStateIsOfWhenItWasAskedFor(t *testing.T) {
	s := &host{naming: 300 * time.Millisecond}
	b := start(t, pulling(EndpointConfig{URL: s.serve(t, dumpOf(0)), Ranks: []string{"0"}}), nil)
	b.trigger(t)
	e := b.waitFor(t, "a state", func(e events) bool { return len(e.states[0]) == 1 })
	assert.LessOrEqual(t, e.states[0][0].Time, s.taken.Load())
	assert.Zero(t, s.asked.Load(), "it has an operation open: that has a stack")
}

// Of a rank that is in no operation, its host's stack is what tells why.
func TestWhereAnIdleRankIs(t *testing.T) {
	s := &host{traceback: func(w http.ResponseWriter) {
		fmt.Fprint(w, "Thread 0x1 (most recent call first):\n  File \"/job/data.py\", line 7 in read\n")
	}}
	b := start(t, pulling(EndpointConfig{URL: s.serve(t, dumpOf(3)), Ranks: []string{"3"}}), nil)
	b.trigger(t)
	e := b.waitFor(t, "a state", func(e events) bool { return len(e.states[3]) == 1 })
	assert.Equal(t, "read (/job/data.py:7)", e.states[3][0].HostStack)
}

// One that can not say it, as while somebody holds Python's lock, is not asked again and again:
// each request would keep a thread of its server.
func TestWhoCanNotSayWhereItIsIsAskedOnce(t *testing.T) {
	s := &host{traceback: func(w http.ResponseWriter) { http.Error(w, "no", http.StatusInternalServerError) }}
	cfg := pulling(EndpointConfig{URL: s.serve(t, dumpOf(3)), Ranks: []string{"3"}})
	cfg.Pull.Interval = 20 * time.Millisecond
	b := start(t, cfg, nil)
	b.waitFor(t, "three states", func(e events) bool { return len(e.states[3]) >= 3 })
	assert.EqualValues(t, 1, s.asked.Load())
	moved := dumpOf(3)
	moved.Entries[0].Created += sec
	s.holds(moved)
	assert.Eventually(t, func() bool { return s.asked.Load() == 2 }, 5*time.Second, 10*time.Millisecond)
}
