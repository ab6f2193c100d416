// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

const (
	// jobsAtATime is how many jobs run beside each other, each for jobLife. One in two has steps, one
	// in four hangs: 24 jobs of the first are there after five minutes, of the second after ten.
	jobsAtATime = 4
	jobLife     = 25 * time.Second
	hosts       = 8 // of the probe mesh
)

// Slopes a minute above which something leaks.
const (
	goroutineFloor  = 0.5
	descriptorFloor = 0.2
)

// gauge is one thing that must stay flat.
type gauge struct {
	name    string
	unit    float64 // what it is divided by
	floor   float64 // slope a minute
	samples []float64
}

// soaked is a collector under ordinary load.
type soaked struct {
	config    string
	collector *collector
	client    *client
	gauges    []*gauge
}

// soak sends ordinary load to collectors of several configurations at once, and reports what
// they need of memory, goroutines, threads and descriptors.
func soak(ctx context.Context, o *options, stdout, stderr io.Writer) (err error) {
	configs := []string{gateway, standalone}
	if o.config != "" {
		configs = []string{o.config}
	}
	var all []*soaked
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.stop())
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, config := range configs {
		s, err := startSoaked(ctx, o, config)
		if err != nil {
			return err
		}
		all = append(all, s)
		s.load(ctx, &wg, o.rings, stderr)
	}
	fmt.Fprintf(stderr, "soak for %v\n", o.duration)
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Since(began) < o.duration {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, s := range all {
			if err := s.sample(ctx); err != nil {
				return err
			}
		}
	}
	return printSoak(stdout, all)
}

func startSoaked(ctx context.Context, o *options, config string) (*soaked, error) {
	c, err := startCollector(ctx, o.program, filepath.Join(o.configs, config), o.lower(loweredForSoak))
	if err != nil {
		return nil, err
	}
	sender, err := newClient(ctx, c.otlp)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	gauges := []*gauge{
		{name: "RSS, MiB", unit: mebibyte, floor: o.floor},
		{name: "goroutines", unit: 1, floor: goroutineFloor},
		{name: "threads", unit: 1, floor: goroutineFloor},
		{name: "descriptors", unit: 1, floor: descriptorFloor},
	}
	return &soaked{config: config, collector: c, client: sender, gauges: gauges}, nil
}

func (s *soaked) stop() error {
	s.client.close()
	return s.collector.stop()
}

func (s *soaked) sample(ctx context.Context) error {
	select {
	case <-s.collector.done:
		return fmt.Errorf("run collector of %s: it ended: %w: %s", s.config, s.collector.err, s.collector.lastLog())
	default:
	}
	rss, err := s.collector.rss()
	goroutines, err2 := s.collector.goroutines(ctx)
	threads, err3 := s.collector.entries("task")
	descriptors, err4 := s.collector.entries("fd")
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return fmt.Errorf("sample collector of %s: %w", s.config, err)
	}
	for i, v := range []float64{rss, goroutines, threads, descriptors} {
		s.gauges[i].samples = append(s.gauges[i].samples, v)
	}
	freeAll(s.collector.events)
	return nil
}

func printSoak(w io.Writer, all []*soaked) error {
	t := tabwriter.NewWriter(w, 12, 0, 2, ' ', 0)
	fmt.Fprintln(t, "configuration\twhat\tafter 1 min\tmiddle\tend\tslope of the last half, a minute")
	var errs []error
	for _, s := range all {
		for _, g := range s.gauges {
			n := len(g.samples)
			at := func(i int) float64 { return g.samples[min(i, n-1)] / g.unit }
			slope := trendOf(g.samples[n/2:]).per(minute, g.unit)
			fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%.0f\t%v\n", s.config, g.name, at(minute), at(n/2), at(n-1), slope)
			switch {
			case !slope.ok:
				errs = append(errs, fmt.Errorf("check %s of %s: %w", g.name, s.config, errShort))
			case slope.rises(g.floor):
				errs = append(errs, fmt.Errorf("check %s of %s: got a slope of %v a minute; want at most %g, or noise", g.name, s.config, slope, g.floor))
			}
		}
	}
	return errors.Join(append(errs, t.Flush())...)
}

// load starts everything that sends.
func (s *soaked) load(ctx context.Context, wg *sync.WaitGroup, rings string, stderr io.Writer) {
	send := func(m message) { _ = s.client.send(ctx, m) }
	for slot := range jobsAtATime {
		wg.Go(func() { jobs(ctx, slot, send) })
	}
	wg.Go(func() { each(ctx, 2*time.Second, func(int64) { send(ofLogs(mesh(time.Now()))) }) })
	wg.Go(func() { each(ctx, 50*time.Millisecond, func(n int64) { send(ofTraces(call(n, time.Now()))) }) })
	if s.config != standalone { // reads none
		return
	}
	if _, err := os.Stat(rings); err != nil {
		fmt.Fprintf(stderr, "write no rings: %v\n", err)
		return
	}
	for rank := range 2 {
		wg.Go(func() { s.rings(ctx, rings, rank) })
	}
}

// jobs runs one job after the other: healthy, with a straggler, one that hangs, and one whose
// ranks have resumed from different steps.
func jobs(ctx context.Context, slot int, send func(message)) {
	for n := slot; ctx.Err() == nil; n++ {
		job := jobPrefix + strconv.Itoa(slot) + "-" + strconv.Itoa(n)
		life, cancel := context.WithTimeout(ctx, jobLife)
		switch n % 4 {
		case 0:
			each(life, 250*time.Millisecond, func(n int64) { send(ofTraces(step(job, n, time.Now(), -1))) })
		case 1:
			straggling.run(life, job, send)
		case 2:
			hanging.run(life, job, send)
		case 3:
			resuming.run(life, job, send)
		}
		cancel()
	}
}

// mesh is what probes between hosts and the clocks of each have measured.
func mesh(now time.Time) plog.Logs {
	ld := plog.NewLogs()
	for host := range hosts {
		raw := func(h int) string { return fmt.Sprintf("host:soak%d/boot/raw", h%hosts) }
		e := model.ClockEdge{
			Src: raw(host), Dst: raw(host + 1), At: now.UnixNano(), Span: 2e9, Lower: -1000 - rand.Int64N(1000), Upper: 1000 + rand.Int64N(1000),
			Samples: 20, Source: model.EdgeProbe, Stamps: model.StampKernel,
		}
		lr := appendRecord(ld)
		clockmap.EdgeToLog(&e, lr)
		lr.SetTimestamp(pcommon.NewTimestampFromTime(now))
	}
	return ld
}

// call is one request of a service to another.
func call(n int64, now time.Time) ptrace.Traces {
	td := ptrace.NewTraces()
	id := spanID(n)
	for i, kind := range []ptrace.SpanKind{ptrace.SpanKindClient, ptrace.SpanKindServer} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(semconv.ServiceName, fmt.Sprint("service ", i))
		rs.Resource().Attributes().PutStr(semconv.HostName, fmt.Sprintf("soak%d", (int(n)+i)%hosts))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID([16]byte(append(id[:], id[:]...)))
		s.SetSpanID(spanID(2*n + int64(i)))
		if i == 1 {
			s.SetParentSpanID(spanID(2 * n))
		}
		s.SetKind(kind)
		s.SetName("GET")
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Duration(i) * time.Millisecond)))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Duration(10-i) * time.Millisecond)))
	}
	return td
}

// rings runs processes of one rank, one after the other, that write their rings where the
// collector reads them.
func (s *soaked) rings(ctx context.Context, program string, rank int) {
	for n := 0; ctx.Err() == nil; n++ {
		cmd := exec.CommandContext(ctx, program, "1000", []string{"close", "die"}[n%2])
		cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+s.collector.rings, "RANK="+strconv.Itoa(rank), "LOCAL_RANK="+strconv.Itoa(rank),
			"WORLD_SIZE=2", "LOCKSTEP_JOB_ID=rings", "TORCHELASTIC_RESTART_COUNT="+strconv.Itoa(n), "LOCKSTEP_RING_LANES=4", "LOCKSTEP_RING_RECORDS=1024")
		_ = cmd.Run() // one that dies ends with a status of its own
	}
}
