// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/exporter/reportexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
	"github.com/lockstep-otel/lockstep/internal/report/terminal"
)

// reporter reads findings from log records, and writes those that have news.
type reporter struct {
	config *Config
	meter  *metadata.TelemetryBuilder
	sink   Sink // nil: findings are written

	mu      sync.Mutex
	journal *journal.Journal
	out     *output // nil where it is not open
	style   report.Style
}

func newReporter(c *Config, set component.TelemetrySettings, sink Sink) (*reporter, error) {
	meter, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	r := &reporter{config: c, meter: meter, sink: sink}
	r.journal = journal.New(journal.Config{
		UpdateEvery: c.UpdateInterval,
		Forgotten:   func() { meter.ExporterReportForgottenFindings.Add(context.Background(), 1) },
	})
	return r, nil
}

func (r *reporter) start(context.Context, component.Host) error {
	if r.sink != nil {
		return nil
	}
	out, err := openOutput(r.config.Path)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out, r.style = out, r.styleOf(out)
	return nil
}

func (r *reporter) styleOf(out *output) report.Style {
	style := terminal.StyleOf(out.file, os.Getenv)
	if r.config.Width > 0 {
		style.Width = r.config.Width
	}
	if r.config.Color != colorAuto {
		style.Color = r.config.Color == colorAlways
	}
	return style
}

func (r *reporter) shutdown(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil // was never started, or writes nothing
	}
	err := r.out.flush()
	if err == nil && r.config.Summary {
		_, err = r.out.write(r.summary())
	}
	err = errors.Join(err, r.out.close())
	r.out = nil
	return err
}

// logs writes the findings of a request. After an error the request may be sent again: what has been
// written already has no news then.
func (r *reporter) logs(ctx context.Context, ld plog.Logs) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out != nil {
		if err := r.out.flush(); err != nil {
			return err
		}
	}
	foreign := int64(0)
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				f, ok := otelmap.LogToFinding(lr, nil)
				if !ok {
					foreign++
					continue
				}
				if err := r.finding(ctx, &f); err != nil {
					return err
				}
			}
		}
	}
	if foreign > 0 {
		r.meter.ExporterReportForeignRecords.Add(ctx, foreign)
	}
	return nil
}

func (r *reporter) finding(ctx context.Context, f *model.Finding) error {
	known := r.journal.Knows(f.ID)
	switch {
	case r.sink != nil:
		r.sink(*f)
		return nil
	case f.Severity < r.config.minSeverity() && !known:
		return nil
	}
	now := time.Now()
	n, ok := r.journal.Note(f, now)
	if !ok || !n.First && r.config.Updates == updatesNone {
		return nil
	}
	begun, err := r.out.write(r.render(&n))
	if begun { // where an error has cut it, the next write goes on
		r.journal.Printed(&n, now)
		r.meter.ExporterReportPrintedRevisions.Add(ctx, 1)
	}
	return err
}
