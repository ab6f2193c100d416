// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/bench/internal/broker"
	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

// world is one job, Kafka, a gateway and a concluder.
type world struct {
	o                  *options
	broker             *broker.Broker
	topics             map[string]string // of this size, by the variable that configurations take
	dir                string            // of this size
	gateway, concluder *collector
	jaeger             *discard
}

// The topics of a size, by variable.
const (
	operations = "LOCKSTEP_KAFKA_OPERATIONS"
	events     = "LOCKSTEP_KAFKA_EVENTS"
	jobs       = "LOCKSTEP_KAFKA_JOBS"
	jobEvents  = "LOCKSTEP_KAFKA_JOB_EVENTS"
	clocks     = "LOCKSTEP_KAFKA_CLOCKS"
)

// size measures a job of so many ranks and steps.
func (o *options) size(ctx context.Context, b *broker.Broker, dir string, ranks, steps int) (_ *row, err error) {
	r, err := recording.New(recording.Options{Ranks: ranks, Steps: steps, Batch: 1, Layout: o.layout, Dir: dir})
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it is
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w, err := o.newWorld(ctx, b, dir, ranks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	if err := w.learn(ctx, r); err != nil {
		return nil, err
	}
	out, err := w.measure(ctx, r)
	if err != nil {
		return nil, err
	}
	out.alone, err = w.measureAlone(ctx, r)
	return out, err
}

// measureAlone returns what a gateway without Kafka takes of a span, ns.
func (w *world) measureAlone(ctx context.Context, r *recording.Recording) (_ float64, err error) {
	c, err := w.start(ctx, "gateway.yaml", 0, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if err := learnAlone(ctx, c, r); err != nil {
		return 0, err
	}
	before, err := usedBy([]process{c.process})
	if err != nil {
		return 0, err
	}
	if err := r.Each(func(packet []byte) error {
		return post(ctx, "http://"+c.env["LOCKSTEP_OTLP_HTTP_ENDPOINT"]+"/v1/traces", packet)
	}); err != nil {
		return 0, fmt.Errorf("send to gateway.yaml: %w", err)
	}
	if err := concluded(ctx, r, c); err != nil {
		return 0, err
	}
	after, err := usedBy([]process{c.process})
	if err != nil {
		return 0, err
	}
	_, judging := counted(r)
	ctx, cancel := context.WithTimeout(ctx, doneLimit)
	defer cancel()
	if err := errors.Join(c.check(ctx, judging), c.named(ctx)); err != nil {
		return 0, err
	}
	return float64((after[0].cpu - before[0].cpu).Nanoseconds()) / float64(r.Spans), nil
}

func (o *options) newWorld(ctx context.Context, b *broker.Broker, dir string, ranks int) (_ *world, err error) {
	w := &world{o: o, broker: b, dir: filepath.Join(dir, strconv.Itoa(ranks)), topics: map[string]string{}}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	compacted := "compact,delete"
	for variable, settings := range map[string]map[string]*string{
		operations: nil, events: nil, jobs: nil, jobEvents: nil, clocks: {"cleanup.policy": &compacted},
	} {
		w.topics[variable] = fmt.Sprintf("%s-%d", variable, ranks)
		if err := b.Topic(w.topics[variable], settings); err != nil {
			return nil, err //nolint:wrapcheck // says what it is
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.end())
		}
	}()
	if w.jaeger, err = newDiscard(); err != nil {
		return nil, err
	}
	if w.gateway, err = w.start(ctx, "gateway-kafka.yaml", 3, group("gateways", ranks)); err != nil {
		return nil, err
	}
	w.concluder, err = w.start(ctx, "concluder-kafka.yaml", 2, group("concluders", ranks))
	return w, err
}

func (w *world) end() (err error) {
	for _, c := range []*collector{w.gateway, w.concluder} {
		if c != nil {
			err = errors.Join(err, c.end())
		}
	}
	if w.jaeger != nil {
		w.jaeger.end()
	}
	return err
}

const (
	// doneLimit is for how long nothing may happen before the job is concluded.
	doneLimit = 2 * time.Minute
	pollEvery = 100 * time.Millisecond
)

// measure sends the job as agents do, and waits until it is concluded.
func (w *world) measure(ctx context.Context, r *recording.Recording) (*row, error) {
	processes := []process{w.gateway.process, w.concluder.process, {w.broker.Pid()}}
	before, err := usedBy(processes)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	agents, err := w.agents(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("send as agents do: %w", err)
	}
	if err := concluded(ctx, r, w.concluder, w.gateway); err != nil {
		return nil, err
	}
	wall := time.Since(began)
	after, err := usedBy(processes)
	if err != nil {
		return nil, err
	}
	out := &row{ranks: r.Ranks, steps: r.Steps, spans: r.Spans, wall: wall}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(r.Spans) }
	out.cpu[agent] = per(agents)
	for i, part := range []part{gateway, concluder, brokers} {
		out.cpu[part] = per(after[i].cpu - before[i].cpu)
		out.peak[part] = after[i].peak
	}
	for variable, to := range map[string]*float64{operations: &out.first, jobs: &out.second} {
		n, err := w.broker.DiskBytes(w.topics[variable])
		if err != nil {
			return nil, err //nolint:wrapcheck // says what it is
		}
		*to = float64(n) / float64(r.Spans)
	}
	return out, w.check(r)
}

// concluded waits until a collector has concluded all steps. Those before it must not end.
func concluded(ctx context.Context, r *recording.Recording, last *collector, before ...*collector) error {
	done, since := int64(-1), time.Now()
	for {
		counters, err := last.counters(ctx)
		if err != nil {
			return err
		}
		ops, steps := counters["connector_desync_ops"], counters["connector_straggler_steps_analysed"]
		if ops >= int64(r.Spans) && steps >= int64(r.Steps) {
			return nil
		}
		if ops+steps != done {
			done, since = ops+steps, time.Now()
		}
		if time.Since(since) > doneLimit {
			return fmt.Errorf("wait for the end of the job: got %d of %d spans and %d of %d steps, and nothing for %s\n%s", ops, r.Spans, steps, r.Steps, doneLimit, last.tail())
		}
		for _, c := range append(before, last) {
			if c.hasEnded() {
				return fmt.Errorf("wait for the end of the job: %s ended\n%s", c.name, c.tail())
			}
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of the job: %w", ctx.Err())
		}
	}
}
