// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	loadSpans   = 50 // of a request
	loadPeriod  = 50 * time.Millisecond
	loadClients = 8
	loadName    = "load"
	// loadTries bounds the requests that wait for a client while the collector is away.
	loadTries = 10_000
)

// spanLoad sends spans at a constant rate, numbered from 0, and each request again until it is
// acknowledged.
type spanLoad struct {
	url     string
	acked   atomic.Int64
	refused atomic.Int64 // spans, each time that they were
	stopIt  func()
}

// loadRate is how many spans a second startLoad sends.
const loadRate = int(loadSpans * time.Second / loadPeriod)

func startLoad(t *testing.T, url string) *spanLoad {
	t.Helper()
	return startLoadAt(t, url, loadRate)
}

// startLoadAt starts a load of so many spans a second.
func startLoadAt(t *testing.T, url string, rate int) *spanLoad {
	t.Helper()
	l := &spanLoad{url: url}
	ctx, cancel := context.WithCancel(context.Background())
	requests := make(chan int, loadTries)
	var senders sync.WaitGroup
	for range loadClients {
		senders.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: requestLimit}
			defer client.CloseIdleConnections()
			for first := range requests {
				l.send(ctx, client, first)
			}
		})
	}
	stop := make(chan struct{})
	senders.Go(func() {
		defer close(requests)
		ticker := time.NewTicker(loadSpans * time.Second / time.Duration(rate))
		defer ticker.Stop()
		for first := 0; ; first += loadSpans {
			select {
			case <-stop:
				return
			case <-ticker.C:
				requests <- first
			}
		}
	})
	l.stopIt = sync.OnceFunc(func() { close(stop); senders.Wait() })
	t.Cleanup(func() { cancel(); l.stopIt() })
	return l
}

// stop ends the load once all that was made is acknowledged.
func (l *spanLoad) stop() { l.stopIt() }

// acknowledged returns how many spans were. After stop they are those with the numbers below that.
func (l *spanLoad) acknowledged() int { return int(l.acked.Load()) }

func (l *spanLoad) send(ctx context.Context, client *http.Client, first int) {
	for ctx.Err() == nil {
		if accepted(ctx, client, l.url, spansFrom(first)) {
			l.acked.Add(loadSpans)
			return
		}
		l.refused.Add(loadSpans)
		time.Sleep(loadPeriod)
	}
}

func accepted(ctx context.Context, client *http.Client, url string, body []byte) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// spansFrom returns a request whose spans have the ids first+1, first+2, ..., since 0 is no id.
func spansFrom(first int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[`)
	now := time.Now().UnixNano()
	for i := range loadSpans {
		if i > 0 {
			b.WriteByte(',')
		}
		id := first + i + 1
		fmt.Fprintf(&b, `{"traceId":"%032x","spanId":"%016x","name":%q,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}`, id, id, loadName, now, now+1000)
	}
	b.WriteString(`]}]}]}`)
	return b.Bytes()
}

// sunkLine is what the sink reads of a request.
type sunkLine struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Spans []sunkSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type sunkSpan struct {
	ID         string     `json:"spanId"`
	Name       string     `json:"name"`
	Attributes []keyValue `json:"attributes"`
}

// storyPath is where the traces of steps go.
const storyPath = "/story"

// spanSink counts what arrives.
type spanSink struct {
	url   string
	mu    sync.Mutex
	spans map[int]int         // of the load, by number
	ranks map[int]map[int]int // steps, by rank
	// stories has the most ranks that one trace of a step has.
	stories map[int]int
	// unlike are steps of which two traces have different ranks.
	unlike map[int]bool
}

func newSpanSink(t *testing.T) *spanSink {
	t.Helper()
	s := &spanSink{spans: map[int]int{}, ranks: map[int]map[int]int{}, stories: map[int]int{}, unlike: map[int]bool{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *spanSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request sunkLine
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable) // cut by a kill of the sender
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, storyPath) {
		s.takeStories(&request)
	} else {
		s.takeSpans(&request)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

// takeStories counts the ranks of each step whose trace is in a request: such a trace is in one.
func (s *spanSink) takeStories(request *sunkLine) {
	ranks := map[int]int{}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for i := range scope.Spans {
				if step, ok := stepOf(&scope.Spans[i]); ok {
					ranks[step]++
				}
			}
		}
	}
	for step, n := range ranks {
		if before := s.stories[step]; before != 0 && before != n {
			s.unlike[step] = true
		}
		s.stories[step] = max(s.stories[step], n)
	}
}

func (s *spanSink) takeSpans(request *sunkLine) {
	for _, resource := range request.ResourceSpans {
		rank := textOf(resource.Resource.Attributes, "lockstep.rank")
		for _, scope := range resource.ScopeSpans {
			for i := range scope.Spans {
				s.take(rank, &scope.Spans[i])
			}
		}
	}
}

// stepOf returns the step that a span is of one rank.
func stepOf(span *sunkSpan) (int, bool) {
	if textOf(span.Attributes, "lockstep.op.kind") != "step" {
		return 0, false
	}
	step, err := strconv.Atoi(textOf(span.Attributes, "lockstep.step"))
	return step, err == nil
}

func (s *spanSink) take(rank string, span *sunkSpan) {
	if span.Name == loadName {
		if id, err := strconv.ParseInt(span.ID, 16, 64); err == nil {
			s.spans[int(id-1)]++
		}
		return
	}
	step, ok := stepOf(span)
	r, err := strconv.Atoi(rank)
	if !ok || err != nil {
		return
	}
	if s.ranks[r] == nil {
		s.ranks[r] = map[int]int{}
	}
	s.ranks[r][step]++
}

func textOf(attributes []keyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String + a.Value.Int
		}
	}
	return ""
}

// missing returns how many of the first n spans of the load have not arrived.
func (s *spanSink) missing(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := 0
	for i := range n {
		if s.spans[i] == 0 {
			missing++
		}
	}
	return missing
}

// spansTwice returns how often a span of the load came that had come before.
func (s *spanSink) spansTwice() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	twice := 0
	for _, times := range s.spans {
		twice += times - 1
	}
	return twice
}

// stepsOf returns how often each step of a rank has come.
func (s *spanSink) stepsOf(rank int) map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ranks[rank])
}

// steps returns how many steps of all ranks have come.
func (s *spanSink) steps() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.ranks {
		n += len(seen)
	}
	return n
}

// unlikeSteps returns how many steps were concluded twice with different ranks.
func (s *spanSink) unlikeSteps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unlike)
}

// judged returns how many of the first n steps have been judged over all ranks, and over some.
func (s *spanSink) judged(n, ranks int) (whole, part int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for step := range n {
		switch seen := s.stories[step]; {
		case seen >= ranks:
			whole++
		case seen > 0:
			part++
		}
	}
	return whole, part
}
