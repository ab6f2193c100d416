// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// counted are counters that must have exactly these values: a figure of stages that lose or repeat what they get is
// none. The second are of spans.
func counted(r *recording.Recording) (gateway, concluder map[string]int64) {
	spans, steps := int64(r.Spans), int64(r.Steps)
	gateway = map[string]int64{
		"processor_clock_skew_spans": spans, "receiver_job_kafka_items_dropped": 0, "receiver_job_kafka_records_skipped": 0,
		"receiver_accepted_spans": spans, "exporter_sent_spans": spans,
	}
	concluder = map[string]int64{
		"connector_straggler_steps_analysed": steps, "connector_desync_ops": spans, "receiver_accepted_spans": spans,
		"connector_straggler_late_ops": 0, "connector_straggler_duplicate_ops": 0, "connector_straggler_unmatched_ops": 0,
		"connector_straggler_ops_dropped": 0, "receiver_job_kafka_items_dropped": 0, "receiver_job_kafka_records_skipped": 0,
	}
	return gateway, concluder
}

// check fails where a span was lost, or the slow rank is not the only one that is named.
func (w *world) check(r *recording.Recording) error {
	ctx, cancel := context.WithTimeout(context.Background(), doneLimit)
	defer cancel()
	ofGateway, ofConcluder := counted(r)
	return errors.Join(
		w.gateway.check(ctx, ofGateway),
		w.concluder.check(ctx, ofConcluder),
		w.concluder.named(ctx),
	)
}

// countLimit is how long a collector may take to count what it has passed on.
const countLimit = 5 * time.Second

func (c *collector) check(ctx context.Context, want map[string]int64) error {
	for end := time.Now().Add(countLimit); ; time.Sleep(100 * time.Millisecond) {
		if err := c.compare(ctx, want); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (c *collector) compare(ctx context.Context, want map[string]int64) error {
	got, err := c.counters(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			errs = append(errs, fmt.Errorf("check %s of %s: got %d; want %d", name, c.name, got[name], want[name]))
		}
	}
	return errors.Join(errs...)
}

// named waits until the slow rank is named, and fails where others are. Amounts of work differ, too, and that is
// no rank's fault.
func (c *collector) named(ctx context.Context) error {
	for {
		found, err := findings(c.env["LOCKSTEP_FINDINGS"])
		if err != nil {
			return err
		}
		right := 0
		for i := range found {
			f := &found[i]
			switch {
			case f.Kind == model.FindingStraggler && f.Class == model.ClassCompute && f.Rank == model.Some(int64(recording.SlowRank)):
				right++
			case f.Kind == model.FindingStraggler && f.Class != model.ClassWorkImbalance:
				return fmt.Errorf("check findings: got %s of class %s, rank %v, host %q; want none but of rank %d", f.Kind, f.Class, f.Rank, f.Host, recording.SlowRank)
			}
		}
		if right > 0 {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("check findings: got none of rank %d, which is slow; want one", recording.SlowRank)
		}
	}
}

// findings reads a file of lines, each OTLP in JSON.
func findings(path string) (all []model.Finding, err error) {
	file, err := os.Open(path) //nolint:gosec // of this run
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil // what is being written is read the next time
		}
		var u plog.JSONUnmarshaler
		ld, err := u.UnmarshalLogs(line)
		if err != nil {
			return nil, fmt.Errorf("read findings: %w", err)
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					if f, ok := otelmap.LogToFinding(lr, nil); ok {
						all = append(all, f)
					}
				}
			}
		}
	}
}
