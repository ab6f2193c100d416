// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	loadJobs     = 8 // so that each of two gateways has some
	loadStepOps  = 5 // of a rank, its step counted
	loadStepTime = 400 * time.Millisecond
	// loadApart is how long after the first rank the second one sends a step: steps are open for that long.
	loadApart = 1500 * time.Millisecond
	loadJob   = "load-"
)

// stepLoad sends the steps of jobs of two ranks, each rank to an agent of its own.
type stepLoad struct {
	spans  atomic.Int64 // acknowledged
	stopIt func()
}

func startStepLoad(t *testing.T, agents []string) *stepLoad {
	t.Helper()
	l := &stepLoad{}
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for job := range loadJobs {
		for rank, agent := range agents {
			senders.Go(func() {
				client := &http.Client{Transport: &http.Transport{}, Timeout: requestLimit}
				defer client.CloseIdleConnections()
				time.Sleep(time.Duration(rank) * loadApart)
				ticker := time.NewTicker(loadStepTime)
				defer ticker.Stop()
				for step := 0; ; step++ {
					for ctx.Err() == nil && !accepted(ctx, client, agent, loadStep(job, rank, step)) {
						time.Sleep(loadPeriod)
					}
					l.spans.Add(loadStepOps)
					select {
					case <-stop:
						return
					case <-ticker.C:
					}
				}
			})
		}
	}
	l.stopIt = sync.OnceFunc(func() { close(stop); senders.Wait() })
	t.Cleanup(func() { cancel(); l.stopIt() })
	return l
}

// stop ends the load once all that was made is acknowledged.
func (l *stepLoad) stop() { l.stopIt() }

func (l *stepLoad) produced() int { return int(l.spans.Load()) }

// loadStep returns a request with a rank's part of a step.
func loadStep(job, rank, step int) []byte {
	var b bytes.Buffer
	text := func(key, value string) string {
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, value)
	}
	number := func(key string, value int) string {
		return fmt.Sprintf(`{"key":%q,"value":{"intValue":"%d"}}`, key, value)
	}
	name := loadJob + strconv.Itoa(job)
	fmt.Fprintf(&b, `{"resourceSpans":[{"resource":{"attributes":[%s,%s,%s,%s,%s]},"scopeSpans":[{"scope":{},"spans":[`,
		text("service.name", name), text("lockstep.job.id", name), text("lockstep.job.incarnation", name),
		number("lockstep.rank", rank), number("lockstep.world_size", 2))
	at := time.Now().UnixNano()
	for i := range loadStepOps {
		kind, from, to := "compute", at+int64(i)*1e6, at+int64(i+1)*1e6
		if i == loadStepOps-1 { // sources send it last
			kind, from = "step", at
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"traceId":"%016x%016x","spanId":"%04x%04x%08x","name":"op%d","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s,%s,%s]}`,
			job+1, step, job+1, rank*loadStepOps+i, step, i, from, to,
			text("lockstep.op.kind", kind), number("lockstep.step", step), number("thread.id", 1))
	}
	b.WriteString(`]}]}]}`)
	return b.Bytes()
}

// balancedSink has what arrives of all spans, by their numbers, and of the traces of steps.
type balancedSink struct {
	url   string
	mu    sync.Mutex
	steps map[jobStep]*sunkStep
	seen  map[string]bool // by stream and number
	loose int
	load  map[string]bool // of the load, by id
	last  time.Time
}

type jobStep struct {
	job  string
	step int
}

// sunkStep is what is known of a step: how many operations it has, and what its traces say.
type sunkStep struct {
	ops       int
	concluded bool
	flagged   bool
	lost      int
}

func newBalancedSink(t *testing.T) *balancedSink {
	t.Helper()
	s := &balancedSink{steps: map[jobStep]*sunkStep{}, seen: map[string]bool{}, load: map[string]bool{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *balancedSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request sunkLine
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable) // cut by a kill of the sender
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	for _, resource := range request.ResourceSpans {
		job, source := textOf(resource.Resource.Attributes, "lockstep.job.id"), textOf(resource.Resource.Attributes, "lockstep.sequence.source")
		for _, scope := range resource.ScopeSpans {
			for i := range scope.Spans {
				if strings.HasPrefix(r.URL.Path, storyPath) {
					s.takeRoot(job, &scope.Spans[i])
				} else {
					s.takeSpan(job, source, &scope.Spans[i])
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

func (s *balancedSink) at(job string, step int) *sunkStep {
	of := s.steps[jobStep{job, step}]
	if of == nil {
		of = &sunkStep{}
		s.steps[jobStep{job, step}] = of
	}
	return of
}

func (s *balancedSink) takeSpan(job, source string, span *sunkSpan) {
	if strings.HasPrefix(job, loadJob) {
		s.load[job+" "+span.ID] = true
	}
	key := source + " " + textOf(span.Attributes, "lockstep.sequence.number")
	if s.seen[key] {
		return
	}
	s.seen[key] = true
	if step, err := strconv.Atoi(textOf(span.Attributes, "lockstep.step")); err == nil && textOf(span.Attributes, "lockstep.op.kind") != "" {
		s.at(job, step).ops++
	} else {
		s.loose++
	}
}

// takeRoot reads the root of a step's trace: of its spans the one that says how many were left out.
func (s *balancedSink) takeRoot(job string, span *sunkSpan) {
	step, err := strconv.Atoi(textOf(span.Attributes, "lockstep.step"))
	if err != nil || textOf(span.Attributes, "lockstep.story.limit") == "" {
		return
	}
	of := s.at(job, step)
	why := textOf(span.Attributes, "lockstep.step.incomplete")
	if why == "concluded_before" {
		return
	}
	of.concluded = true
	if lost, err := strconv.Atoi(textOf(span.Attributes, "lockstep.step.lost")); err == nil {
		of.flagged, of.lost = true, of.lost+lost
	}
}

// ofLoad returns how many spans of the load have come.
func (s *balancedSink) ofLoad() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.load)
}

// settle returns once nothing has come for a while: traces of steps wait in a queue.
func (s *balancedSink) settle() {
	for {
		s.mu.Lock()
		since := time.Since(s.last)
		s.mu.Unlock()
		if since > 2*time.Second {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *balancedSink) count(c *balancedCount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.stepless = s.loose
	for _, of := range s.steps {
		c.produced += of.ops
		c.steps++
		switch {
		case !of.concluded:
			c.stepsGone++
		case of.flagged:
			c.stepsFlagged++
			c.flagged += of.ops - of.lost
		default:
			c.whole += of.ops
		}
	}
}

// sequenceMetric returns a metric of a collector that runs, of one outcome where that is not empty.
func sequenceMetric(t *testing.T, k *killable, name, outcome string) (sum int) {
	t.Helper()
	body, err := get("http://" + k.env["LOCKSTEP_TELEMETRY_HOST"] + ":" + k.env["LOCKSTEP_TELEMETRY_PORT"] + "/metrics")
	require.NoError(t, err)
	for line := range strings.Lines(string(body)) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("{ \n", r) })
		if fields[0] == name && strings.Contains(line, `outcome="`+outcome) == (outcome != "") {
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			require.NoError(t, err)
			sum += int(value)
		}
	}
	return sum
}

// spansLost returns how many spans the events of a file say that steps have lost.
func spansLost(t *testing.T, file string) (sum int) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		var logs logLine
		if json.Unmarshal(line, &logs) != nil {
			continue // cut
		}
		for _, resource := range logs.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				for _, record := range scope.LogRecords {
					if record.EventName == "lockstep.steps.lost" {
						n, err := strconv.Atoi(textOf(record.Attributes, "lockstep.steps.lost.spans"))
						require.NoError(t, err)
						sum += n
					}
				}
			}
		}
	}
	return sum
}
