// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/faulty"
)

// faultJob is one fault in a job, or group of clocks, of its own.
type faultJob struct {
	fault faulty.Fault
	kind  int // its place in faulty.Faults
	name  string
	begun time.Time

	mu      sync.Mutex
	next    int64 // moment
	removed int64 // moment; -1: the fault stays
	over    bool  // nothing more is sent
}

func (j *faultJob) String() string { return j.name }

// ends reports whether the fault is removed, or will be.
func (j *faultJob) ends() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.removed >= 0
}

// due returns the moments that have come since the last call.
func (j *faultJob) due(now time.Time) (moments []faulty.Moment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for ; !j.over && !j.begun.Add(time.Duration(j.next)*faulty.Period).After(now); j.next++ {
		moments = append(moments, j.fault.Write(j.name, j.begun, j.next, j.removed))
	}
	return moments
}

// faultLoad sends the telemetry of faults to a gateway. What the gateway does not receive is lost.
type faultLoad struct {
	url    string
	client *http.Client
	mu     sync.Mutex
	jobs   []*faultJob
	// failed is the first moment that could not be written.
	failed error
	stop   func()
}

func startFaults(t *testing.T, url string) *faultLoad {
	t.Helper()
	l := &faultLoad{url: url, client: &http.Client{Transport: &http.Transport{}, Timeout: requestLimit}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(faulty.Period); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case now := <-ticker.C:
				l.send(ctx, now)
			}
		}
	}()
	l.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		l.client.CloseIdleConnections()
		assert.NoError(t, l.failed)
	})
	t.Cleanup(l.stop)
	return l
}

func (l *faultLoad) all() []*faultJob {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*faultJob(nil), l.jobs...)
}

func (l *faultLoad) send(ctx context.Context, now time.Time) {
	var jobs sync.WaitGroup
	for _, job := range l.all() {
		for _, m := range job.due(now) {
			line, err := m.Line()
			if err != nil {
				l.failed = err
				continue
			}
			jobs.Go(func() {
				if line.Traces != nil {
					accepted(ctx, l.client, l.url+"/v1/traces", line.Traces)
				}
				if line.Logs != nil {
					accepted(ctx, l.client, l.url+"/v1/logs", line.Logs)
				}
			})
		}
	}
	jobs.Wait()
}

// begin starts a job of each fault at a time of its own.
func (l *faultLoad) begin(name string, at func() time.Time) (jobs []*faultJob) {
	for kind, of := range faulty.Faults() {
		jobs = append(jobs, &faultJob{
			fault: of, kind: kind, name: fmt.Sprintf("%s-%s", name, strings.ReplaceAll(of.Name, " ", "-")), begun: at(), removed: -1,
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = append(l.jobs, jobs...)
	return jobs
}

// remove sets a job right from then on.
func (l *faultLoad) remove(job *faultJob, at time.Time) {
	job.mu.Lock()
	defer job.mu.Unlock()
	job.removed = int64(at.Sub(job.begun)/faulty.Period) + 1
}

// retire stops the jobs whose findings are closed: a gateway that falls behind leaves out what is late.
func (l *faultLoad) retire(lines []finding) {
	for _, job := range l.all() {
		if last := job.last(lines); job.ends() && last != nil && last.closed() {
			job.mu.Lock()
			job.over = true
			job.mu.Unlock()
		}
	}
}

// of returns the jobs of a fault.
func (l *faultLoad) of(kind int) (jobs []*faultJob) {
	for _, job := range l.all() {
		if job.kind == kind {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// open returns the jobs that were set right and have a finding open.
func (l *faultLoad) open(lines []finding) (jobs []*faultJob) {
	for _, job := range l.all() {
		if job.leftOpen(lines) > 0 {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// others returns the findings that are of no fault, each once. That a clock was set right is a finding of its own.
func (l *faultLoad) others(lines []finding) (texts []string) {
	seen := map[string]bool{}
	jobs := l.all()
	for _, f := range lines {
		explained := f["lockstep.finding.class"] == "step"
		for _, job := range jobs {
			explained = explained || job.is(f)
		}
		if id := f["lockstep.finding.id"]; !explained && !seen[id] {
			seen[id] = true
			texts = append(texts, fmt.Sprintf("%s %s %s of %s%s", f["lockstep.finding.kind"], f["lockstep.finding.class"], f["lockstep.finding.op"], f["lockstep.job.id"], f["lockstep.finding.clock"]))
		}
	}
	return texts
}
