// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	config    *Config
	meter     *metadata.TelemetryBuilder
	sink      Sink            // nil: findings are written
	ends      context.Context //nolint:containedctx // done at the end of the exporter: requests wait no longer
	end       context.CancelCauseFunc
	unwritten *unwritten
	turn      chan struct{} // full while a request, the start or the end has the turn

	// What follows belongs to the turn.
	journal *journal.Journal
	out     *output // nil where it is not open
	style   report.Style
	begun   *model.Finding // the finding that was written last, perhaps not to its end
}

// errEnded is why requests are refused from the end of the exporter on.
var errEnded = errors.New("the exporter has ended")

func newReporter(c *Config, set component.TelemetrySettings, sink Sink) (*reporter, error) {
	meter, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	r := &reporter{config: c, meter: meter, sink: sink, unwritten: newUnwritten(), turn: make(chan struct{}, 1)}
	r.ends, r.end = context.WithCancelCause(context.Background())
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
	r.turn <- struct{}{}
	defer r.yield()
	r.out, r.style = out, r.styleOf(out)
	return nil
}

func (r *reporter) yield() { <-r.turn }

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

// shutdown waits for a reader that does not read until ctx is done. Then it leaves the write behind. Nothing
// begins to be written after it.
func (r *reporter) shutdown(ctx context.Context) error {
	r.turn <- struct{}{} // [ending] takes it from a request that is late
	r.end(errEnded)
	defer r.yield()
	if r.out == nil {
		return nil // was never started, or writes nothing
	}
	err := r.flush(ctx)
	switch {
	case err != nil || r.unwritten.empty():
	case ctx.Err() != nil:
		err = errBlocked
	case r.config.Queue.HasValue(): // else the sender knows of it
		err = fmt.Errorf("write to %s: the exporter ends; %s", r.out.name, r.missing())
	}
	if err == nil && r.config.Summary {
		_, err = r.out.write(ctx, r.summary())
	}
	if errors.Is(err, errBlocked) {
		err = fmt.Errorf("write to %s: %w; %s", r.out.name, errBlocked, r.missing())
	}
	err = errors.Join(err, r.out.close())
	r.out = nil
	return err
}

// missing returns what may be missing where the reader does not read.
func (r *reporter) missing() string {
	text := r.unwritten.String()
	if r.config.Summary {
		text += " and the summary"
	}
	return text + " may be missing, besides what the reader has not read before"
}

// flush writes the rest of the last finding.
func (r *reporter) flush(ctx context.Context) error {
	if err := r.out.flush(ctx); err != nil {
		return err
	}
	if r.begun != nil {
		r.unwritten.done(r.begun)
		r.begun = nil
	}
	return nil
}

// logs writes the findings of a request. After an error the request may be sent again: what has been
// written already, or has begun to be, has no news then.
func (r *reporter) logs(ctx context.Context, ld plog.Logs) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := context.AfterFunc(r.ends, func() { cancel(errEnded) })
	defer ended()
	findings, foreign := findingsOf(ld)
	r.unwritten.add(findings)
	if err := r.await(ctx); err != nil {
		return err
	}
	defer r.yield()
	if r.out != nil {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	for i := range findings {
		if err := r.finding(ctx, &findings[i]); err != nil {
			return err
		}
		r.unwritten.done(&findings[i])
	}
	if foreign > 0 {
		r.meter.ExporterReportForeignRecords.Add(ctx, foreign)
	}
	return nil
}

// await waits for the turn of a request.
func (r *reporter) await(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to write to %s: %w", r.config.Path, context.Cause(ctx))
	}
	if r.ends.Err() != nil {
		r.yield()
		return fmt.Errorf("write to %s: %w", r.config.Path, errEnded)
	}
	return nil
}

// findingsOf returns the findings among log records, and how many others there are.
func findingsOf(ld plog.Logs) (findings []model.Finding, foreign int64) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok {
					findings = append(findings, f)
				} else {
					foreign++
				}
			}
		}
	}
	return findings, foreign
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
	begun, err := r.out.write(ctx, r.render(&n))
	if begun { // where an error has cut it, the next write goes on
		r.begun = f
		r.journal.Printed(&n, now)
		r.meter.ExporterReportPrintedRevisions.Add(ctx, 1)
	}
	return err
}
