// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// senders is how many requests are under way at most.
	senders = 16
	// grace is how long the findings of jobs that behave are waited for beyond the duration.
	grace = 30 * time.Second
	// scrapeEvery is how often both pages of metrics are read.
	scrapeEvery = 10
)

// result is what one kind did to a collector.
type result struct {
	kind         string
	config       string
	seconds      float64
	sent         int64 // messages
	bytes        int64
	failed       int64     // messages that the collector did not take
	rss          []float64 // bytes, one a second
	refused      float64   // items, by the collector's own count
	own, job     int       // the longest page of metrics, bytes
	verdicts     []verdict
	counted      string
	metricsFault error
}

// verdict is on one job that behaves.
type verdict struct {
	job   string
	found string
}

// flood is a kind that is being sent.
type flood struct {
	kind                *kind
	client              *client
	sent, failed, bytes atomic.Int64
}

// run sends rate messages a second until the context ends. What cannot be sent in time is left out.
func (f *flood) run(ctx context.Context, rate int) {
	tokens := make(chan int64, rate)
	var wg sync.WaitGroup
	for w := range senders {
		wg.Go(func() {
			t := newTexts(uint64(w))
			t.n = int64(w) << 40 // names of its own
			for n := range tokens {
				f.one(ctx, t, n)
			}
		})
	}
	defer wg.Wait()
	defer close(tokens)
	began, n := time.Now(), int64(0)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := int64(time.Since(began).Seconds() * float64(rate)); n < due; n++ {
			select {
			case tokens <- n:
			default:
			}
		}
	}
}

func (f *flood) one(ctx context.Context, t *texts, n int64) {
	if ctx.Err() != nil {
		return
	}
	m := f.kind.message(t, n, time.Now())
	f.bytes.Add(int64(m.size()))
	f.sent.Add(1)
	if err := f.client.send(ctx, m); err != nil && ctx.Err() == nil {
		f.failed.Add(1)
	}
}

// sendKind sends a kind to a collector of its own, with jobs beside it that behave: some from
// the beginning, some that begin when half of the time is over.
func sendKind(ctx context.Context, o *options, k *kind) (r *result, err error) {
	config := k.config
	if o.config != "" {
		config = o.config
	}
	c, err := startCollector(ctx, o.program, filepath.Join(o.configs, config), o.lower(lowered))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	a := &attacked{collector: c, flood: &flood{kind: k}, findings: newReader(c.findings), result: &result{kind: k.name, config: config}}
	if a.flood.client, err = newClient(ctx, c.otlp); err != nil {
		return nil, err
	}
	defer a.flood.client.close()
	if a.neighbours, err = newClient(ctx, c.otlp); err != nil {
		return nil, err
	}
	defer a.neighbours.close()
	err = a.run(ctx, o)
	return a.result, err
}

// attacked is a collector under attack.
type attacked struct {
	collector  *collector
	flood      *flood
	neighbours *client
	findings   *reader
	result     *result
	wg         sync.WaitGroup
}

func (a *attacked) run(ctx context.Context, o *options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer a.wg.Wait()
	defer cancel()
	began := time.Now()
	a.wg.Go(func() { a.flood.run(ctx, o.rate) })
	a.begin(ctx, "early")
	late := false
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Since(began) < o.duration || !a.decided() && time.Since(began) < o.duration+grace {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.collector.done:
			return fmt.Errorf("run collector: it ended after %v: %w: %s", time.Since(began).Round(time.Second), a.collector.err, a.collector.lastLog())
		case <-tick.C:
		}
		if !late && time.Since(began) > o.duration/2 {
			a.begin(ctx, "late")
			late = true
		}
		if err := a.look(ctx); err != nil {
			return err
		}
	}
	return a.end(ctx, time.Since(began))
}

// begin starts the jobs that behave.
func (a *attacked) begin(ctx context.Context, when string) {
	for i := range a.flood.kind.neighbours {
		n := &a.flood.kind.neighbours[i]
		if !slices.Contains(n.configs, a.result.config) {
			continue
		}
		job := jobPrefix + n.name + "-" + when
		a.result.verdicts = append(a.result.verdicts, verdict{job: job})
		a.wg.Go(func() {
			n.run(ctx, job, func(m message) { _ = a.neighbours.send(ctx, m) })
		})
	}
}

// neighbourOf returns the neighbour that a job is.
func (a *attacked) neighbourOf(job string) *neighbour {
	i := slices.IndexFunc(a.flood.kind.neighbours, func(n neighbour) bool { return strings.HasPrefix(job, jobPrefix+n.name+"-") })
	return &a.flood.kind.neighbours[i]
}

// decided reports whether a finding of each job is open, or a wrong one was seen.
func (a *attacked) decided() bool {
	all := true
	for i := range a.result.verdicts {
		v := &a.result.verdicts[i]
		v.found = a.findings.verdict(v.job, a.neighbourOf(v.job))
		all = all && v.found != missing && v.found != closed
	}
	return all
}

// look samples the collector and reads what it wrote.
func (a *attacked) look(ctx context.Context) error {
	rss, err := a.collector.rss()
	if err != nil {
		return err
	}
	a.result.rss = append(a.result.rss, rss)
	freeAll(a.collector.events)
	if err := a.findings.read(); err != nil {
		return err
	}
	if len(a.result.rss)%scrapeEvery == 0 {
		a.scrape(ctx)
	}
	return nil
}

// freeAll releases the disk space of a file that no process reads any further.
func freeAll(path string) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		free(file, info.Size())
	}
}

// scrape reads both pages of metrics and keeps the longest of each.
func (a *attacked) scrape(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	own, err := get(ctx, "http://"+a.collector.telemetry+"/metrics")
	job, err2 := get(ctx, "http://"+a.collector.prometheus+"/metrics")
	a.result.metricsFault = errors.Join(err, err2)
	a.result.own, a.result.job = max(a.result.own, len(own)), max(a.result.job, len(job))
}

func (a *attacked) end(ctx context.Context, took time.Duration) error {
	a.decided()
	a.scrape(ctx)
	own, err := a.collector.own(ctx)
	if err != nil {
		return err
	}
	r, f := a.result, a.flood
	r.seconds, r.sent, r.failed, r.bytes, r.refused = took.Seconds(), f.sent.Load(), f.failed.Load(), f.bytes.Load(), refusals(own)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if strings.HasPrefix(name, "otelcol_connector_") || strings.HasPrefix(name, "otelcol_processor_") || strings.HasPrefix(name, "otelcol_receiver_") {
			fmt.Fprintf(&b, "    %s %g\n", name, own[name])
		}
	}
	r.counted = b.String()
	return nil
}
