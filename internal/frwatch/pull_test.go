// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// worker answers as PyTorch's WorkerServer does: the list of handlers by GET, a handler by
// POST, 404 for another method, 400 for a parameter that it does not know.
func worker(t *testing.T, handlers map[string]http.HandlerFunc, list string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/handler/", func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/handler/")
		h := handlers[name]
		switch {
		case name == "" && r.Method == http.MethodGet:
			fmt.Fprint(w, list)
		case h == nil || r.Method != http.MethodPost:
			http.NotFound(w, r)
		default:
			h(w, r)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func pull(t *testing.T, url string, limit int64) (*flightrecorder.Dump, error) {
	t.Helper()
	p := NewPuller(time.Second, limit, flightrecorder.Options{Stacks: true})
	defer p.Close()
	return p.Pull(t.Context(), &Endpoint{URL: url})
}

func TestPullTakesTheHandlerThatSaysMost(t *testing.T) {
	var asked string
	pickle := func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		fmt.Fprint(w, "\x80\x02}(X\x07\x00\x00\x00versionX\x04\x00\x00\x002.10u.")
	}
	url := worker(t, map[string]http.HandlerFunc{"dump_nccl_trace_pickle": pickle}, `["ping","fr_trace_json","dump_nccl_trace_pickle","dump_nccl_trace_json"]`)
	got, err := pull(t, url, 100)
	require.NoError(t, err)
	assert.Equal(t, flightrecorder.Pickle, got.Format, "the others do not answer")
	assert.Equal(t, "includecollectives=true&includestacktraces=true&onlyactive=false", asked)
}

func TestPullFallsBack(t *testing.T) {
	bad := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "unknown parameter", http.StatusBadRequest)
	}
	url := worker(t, map[string]http.HandlerFunc{
		"dump_nccl_trace_pickle": bad,
		// As a process of Gloo answers, in PyTorch 2.15 built for CUDA.
		"dump_nccl_trace_json": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"comm_lib_version":"","nccl_comm_state":{},"pg_config":{},"pg_status":{},"version":"2.10"}`)
		},
		"fr_trace_json": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, gloo) },
	}, `["dump_nccl_trace_pickle","dump_nccl_trace_json","fr_trace_json"]`)
	got, err := pull(t, url, 10000)
	require.NoError(t, err)
	require.Len(t, got.Entries, 1, "who has recorded something is believed")
	assert.Equal(t, "gloo:all_reduce", got.Name(&got.Entries[0]))

	_, err = pull(t, worker(t, map[string]http.HandlerFunc{"dump_nccl_trace_pickle": bad}, `["dump_nccl_trace_pickle"]`), 100)
	require.ErrorContains(t, err, `"unknown parameter\n"`)
	_, err = pull(t, worker(t, nil, `["ping"]`), 100)
	require.ErrorIs(t, err, ErrNoHandler)
	_, err = pull(t, worker(t, nil, `<html>`), 100)
	require.ErrorContains(t, err, "read handlers")
}

// gloo is an answer of PyTorch 2.15, cut to one entry.
const gloo = `{"comm_lib_version":"","entries":[{"collective_seq_id":2,"input_dtypes":["Float"],"input_sizes":[[8]],"is_p2p":false,"op_id":2,"output_dtypes":["Float"],"output_sizes":[[8]],"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"gloo:all_reduce","record_id":1,"retired":false,"state":"scheduled","thread_id":"140070099626880","thread_name":"python","time_created_ns":1795403135153706490,"time_discovered_completed_ns":0,"time_discovered_started_ns":0,"timeout_ms":1800000}],"nccl_comm_state":{},"pg_config":{"":{"desc":"","name":"","ranks":"[0, 1]"}},"pg_status":{"0":{"last_completed_collective":"1","last_enqueued_collective":"2","last_started_collective":"-1"}},"version":"2.10"}`

func TestPullIsBounded(t *testing.T) {
	handlers := func(h http.HandlerFunc) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{"fr_trace_json": h}
	}
	const list = `["fr_trace_json"]`
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	}
	_, err := pull(t, worker(t, handlers(endless), list), 1<<20)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = pull(t, worker(t, nil, `["`+strings.Repeat("x", maxHandlers)+`"]`), 100)
	require.ErrorIs(t, err, ErrTooLarge)

	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	url := worker(t, handlers(slow), list)
	p := NewPuller(50*time.Millisecond, 100, flightrecorder.DefaultOptions())
	defer p.Close()
	_, err = p.Pull(context.Background(), &Endpoint{URL: url})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/secret", http.StatusFound)
	}
	_, err = pull(t, worker(t, handlers(elsewhere), list), 100)
	require.ErrorContains(t, err, "302", "no server refers us elsewhere")
}

func TestParseEndpoint(t *testing.T) {
	got, err := ParseEndpoint("http://rank-{rank}.job:25000/", []int64{0, 3})
	require.NoError(t, err)
	assert.Equal(t, []Endpoint{{"http://rank-0.job:25000", 0, true}, {"http://rank-3.job:25000", 3, true}}, got)
	got, err = ParseEndpoint("https://h:1", nil)
	require.NoError(t, err)
	assert.Equal(t, []Endpoint{{URL: "https://h:1"}}, got)
	for _, bad := range []string{"h:1", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "file:///etc/passwd"} {
		_, err := ParseEndpoint(bad, nil)
		assert.Error(t, err, bad)
	}
	_, err = ParseEndpoint("http://h", []int64{1, 2})
	require.ErrorContains(t, err, "{rank}")
	_, err = ParseEndpoint("http://h{rank}", nil)
	require.ErrorContains(t, err, "without ranks")
}

func TestOwnRank(t *testing.T) {
	group := func(ranks ...int64) flightrecorder.Group { return flightrecorder.Group{Ranks: ranks} }
	rank, ok := OwnRank([]flightrecorder.Group{group(0, 1, 2, 3), group(2, 3), group(), group(1, 3)})
	assert.True(t, ok)
	assert.EqualValues(t, 3, rank)
	_, ok = OwnRank([]flightrecorder.Group{group(0, 1)})
	assert.False(t, ok, "either")
	_, ok = OwnRank([]flightrecorder.Group{group(0, 1), group(2, 3)})
	assert.False(t, ok, "contradiction")
	_, ok = OwnRank(nil)
	assert.False(t, ok)
}
