// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// worker answers as PyTorch's WorkerServer of an NCCL build does.
func worker(t *testing.T, dump []byte) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /handler/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `["ping","dump_nccl_trace_pickle","dump_nccl_trace_json","fr_trace_json"]`)
	})
	mux.HandleFunc("POST /handler/dump_nccl_trace_pickle", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Query().Get("onlyactive") != "false" {
			http.Error(w, "want all", http.StatusBadRequest)
			return
		}
		_, _ = w.Write(dump)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, asked
}

func pulling(urls ...EndpointConfig) *Config {
	cfg := config()
	cfg.JobID = "job-9"
	cfg.Pull.Endpoints = urls
	cfg.Trigger.NetAddr.Endpoint = "127.0.0.1:0"
	return cfg
}

func (b *bench) trigger(t *testing.T, header ...string) (int, answer) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.server.listener.Addr().String()+"/trigger", http.NoBody)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	http.DefaultClient.CloseIdleConnections()
	var a answer
	if resp.Header.Get("Content-Type") == "application/json" {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&a))
	}
	return resp.StatusCode, a
}

func TestServersAreAskedOnRequest(t *testing.T) {
	url0, asked0 := worker(t, frwrite.Pickle(dumpOf(0)))
	url2, _ := worker(t, []byte("\x80\x02N.")) // None
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	b := start(t, pulling(
		EndpointConfig{URL: url0, Ranks: []string{"0"}}, EndpointConfig{URL: gone.URL, Ranks: []string{"1"}}, EndpointConfig{URL: url2, Ranks: []string{"2"}},
	), nil)
	before := time.Now().UnixNano()
	status, a := b.trigger(t)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Equal(t, 3, a.Endpoints)
	e := b.waitFor(t, "one state and two absences", func(e events) bool { return len(e.states) == 1 && len(e.absent) == 2 })
	s := e.states[0][0]
	assert.Equal(t, "job-9", s.Rank.JobID)
	assert.Equal(t, url0, s.Name)
	assert.GreaterOrEqual(t, s.Time, before, "it was asked for: nothing need hang")
	assert.Empty(t, s.Rank.HostName, "a server may be anywhere")
	assert.Equal(t, model.AbsentMissing, e.absent[1][0].Reason)
	assert.Equal(t, model.AbsentUnreadable, e.absent[2][0].Reason)
	assert.EqualValues(t, 1, asked0.Load())
	assert.EqualValues(t, 1, b.counter(t, "pulls_failed", pullRefused))
	assert.EqualValues(t, 1, b.counter(t, "pulls_failed", failedDamaged))

	status, a = b.trigger(t)
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.Equal(t, requestTooSoon, a.Outcome)
	status, _ = b.trigger(t, "Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site")
	assert.Equal(t, http.StatusForbidden, status, "a page of another site")
	assert.EqualValues(t, 1, asked0.Load())
}

func TestServersAreAskedAgainAndAgain(t *testing.T) {
	url, asked := worker(t, frwrite.Pickle(dumpOf(1)))
	cfg := pulling(EndpointConfig{URL: url, Ranks: []string{"1"}})
	cfg.Trigger.NetAddr.Endpoint = ""
	cfg.Pull.Interval = 20 * time.Millisecond
	b := start(t, cfg, nil)
	b.waitFor(t, "three states", func(e events) bool { return len(e.states[1]) >= 3 })
	b.shutdown()
	assert.GreaterOrEqual(t, asked.Load(), int64(3))
	assert.Equal(t, 1, b.traces.SpanCount(), "what is over is told once")
	assert.Len(t, b.events(t).open, 1, "and what is open now and then")
}

func TestRankOfServerIsFoundOut(t *testing.T) {
	d := dumpOf(2)
	d.Groups = append(d.Groups, frwrite.Group{Name: "1", Desc: "dp", Ranks: []int64{0, 2}}, frwrite.Group{Name: "2", Desc: "tp", Ranks: []int64{2, 3}})
	known, _ := worker(t, frwrite.Pickle(d))
	unknown, _ := worker(t, frwrite.Pickle(dumpOf(2)))
	cfg := pulling(EndpointConfig{URL: known}, EndpointConfig{URL: unknown})
	b := start(t, cfg, nil)
	b.trigger(t)
	b.waitFor(t, "the state", func(e events) bool { return len(e.states[2]) == 1 })
	b.waitCount(t, 1, "dumps_failed", failedNoRank)
	assert.Len(t, b.events(t).states, 1)
}

// torch is a process whose monitor reads the pipe and writes a dump, as PyTorch's does.
func torch(t *testing.T, pipe, path string, rank int64) {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(pipe, 0o666))
	fd, err := syscall.Open(pipe, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	done, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var b [1]byte
		for {
			if n, _ := syscall.Read(fd, b[:]); n > 0 {
				assert.NoError(t, os.WriteFile(path, frwrite.Pickle(dumpOf(rank)), 0o644))
			}
			select {
			case <-quit:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(quit)
		<-done
		_ = syscall.Close(fd)
	})
}

func TestDumpsAreHadThroughPipes(t *testing.T) {
	dir := jobDir(t)
	prefix := filepath.Join(dir, "fr_pipe_")
	torch(t, prefix+"0.pipe", dumpPath(dir, 0), 0)
	torch(t, prefix+"1.pipe", dumpPath(dir, 1), 1)
	require.NoError(t, syscall.Mkfifo(prefix+"2.pipe", 0o666))
	cfg := config(filepath.Join(dir, "comm_lib_trace_rank_*"))
	cfg.Ranks = []string{"0-2"}
	cfg.Wait, cfg.MaxWait = 1500*time.Millisecond, time.Minute
	cfg.Trigger.Pipes = []string{prefix}
	cfg.Trigger.NetAddr.Endpoint = "127.0.0.1:0"
	b := start(t, cfg, nil)
	status, a := b.trigger(t)
	assert.Equal(t, http.StatusAccepted, status)
	require.Len(t, a.Pipes, 3)
	assert.Empty(t, a.Pipes[0].Error)
	assert.Contains(t, a.Pipes[2].Error, "nobody reads it")
	e := b.waitFor(t, "two states and an absence", func(e events) bool { return len(e.states) == 2 && len(e.absent) == 1 })
	assert.NotZero(t, e.states[0][0].Time, "it was asked for: nothing need hang")
	assert.Equal(t, model.AbsentMissing, e.absent[2][0].Reason)
}

func TestNobodyToAsk(t *testing.T) {
	cfg := config(jobDir(t))
	cfg.Trigger.NetAddr.Endpoint = "127.0.0.1:0"
	b := start(t, cfg, nil)
	status, a := b.trigger(t)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, requestNobody, a.Outcome)
	resp, err := http.Get("http://" + b.server.listener.Addr().String() + "/trigger")
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	http.DefaultClient.CloseIdleConnections()
}

func TestAddressThatIsTaken(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	cfg := config(jobDir(t))
	cfg.Trigger.NetAddr.Endpoint = strings.TrimPrefix(s.URL, "http://")
	b := startFailing(t, cfg)
	assert.ErrorContains(t, b, "listen for requests")
}
