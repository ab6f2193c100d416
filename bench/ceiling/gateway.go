// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/processor"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/extension/timelineextension"
	"github.com/lockstep-otel/lockstep/internal/timeline"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
)

// gateway are the parts of a gateway's traces pipeline, made by their factories. Each of skew,
// straggler and desync takes what the one before has made of the spans.
type gateway struct {
	telemetry *componenttest.Telemetry
	timeline  *timeline.Timeline
	skew      processor.Traces
	skewed    *handed // what skew passes on
	// straggler and desync are the instances that feed the others of their configurations.
	straggler, desync connector.Traces
	sink              *sink
	parts             []component.Component // in the order in which a collector ends them
}

// host gives components the extensions.
type host map[component.ID]component.Component

// GetExtensions implements component.Host.
func (h host) GetExtensions() map[component.ID]component.Component { return h }

// newGateway makes and starts the parts as a configuration has them.
func newGateway(ctx context.Context, cfg *settings) (*gateway, error) {
	g := &gateway{telemetry: componenttest.NewTelemetry(), skewed: &handed{}, sink: newSink()}
	timelineID := component.NewID(timelineextension.NewFactory().Type())
	ext, err := g.extension(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(g.connectors(ctx, cfg), g.processor(ctx, cfg)); err != nil {
		return nil, err
	}
	g.parts = append(g.parts, ext)
	for i := range g.parts {
		at := len(g.parts) - 1 - i // what follows starts first
		if err := g.parts[at].Start(ctx, host{timelineID: ext}); err != nil {
			g.parts = g.parts[at+1:]
			return nil, errors.Join(fmt.Errorf("start gateway: %w", err), g.stop(ctx))
		}
	}
	return g, nil
}

// extension makes the timeline, which serves nothing.
func (g *gateway) extension(ctx context.Context, cfg *settings) (extension.Extension, error) {
	f := timelineextension.NewFactory()
	ext, err := f.Create(ctx, extension.Settings{ID: component.NewID(f.Type()), TelemetrySettings: g.telemetry.NewTelemetrySettings()}, cfg.timeline)
	if err != nil {
		return nil, fmt.Errorf("make timeline: %w", err)
	}
	g.timeline = ext.(timeline.Provider).Timeline()
	return ext, nil
}

// connectors makes both connectors, with all signals that the pipelines take from them.
func (g *gateway) connectors(ctx context.Context, cfg *settings) error {
	set := func(f connector.Factory) connector.Settings {
		return connector.Settings{ID: component.NewID(f.Type()), TelemetrySettings: g.telemetry.NewTelemetrySettings()}
	}
	var errs [5]error
	var all [5]connector.Traces
	f := stragglerconnector.NewFactory()
	all[0], errs[0] = f.CreateTracesToLogs(ctx, set(f), cfg.straggler, g.sink)
	all[1], errs[1] = f.CreateTracesToMetrics(ctx, set(f), cfg.straggler, g.sink)
	all[2], errs[2] = f.CreateTracesToTraces(ctx, set(f), cfg.straggler, g.sink)
	f = desyncconnector.NewFactory()
	all[3], errs[3] = f.CreateTracesToLogs(ctx, set(f), cfg.desync, g.sink)
	all[4], errs[4] = f.CreateTracesToMetrics(ctx, set(f), cfg.desync, g.sink)
	g.straggler, g.desync = all[0], all[3]
	for _, c := range all {
		g.parts = append(g.parts, c)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("make connectors: %w", err)
	}
	return nil
}

func (g *gateway) processor(ctx context.Context, cfg *settings) (err error) {
	f := clockskewprocessor.NewFactory()
	set := processor.Settings{ID: component.NewID(f.Type()), TelemetrySettings: g.telemetry.NewTelemetrySettings()}
	if g.skew, err = f.CreateTraces(ctx, set, cfg.skew, g.skewed); err != nil {
		return fmt.Errorf("make clock_skew: %w", err)
	}
	g.parts = slices.Insert(g.parts, 0, component.Component(g.skew))
	return nil
}

// stop ends the parts, the sources of others first.
func (g *gateway) stop(ctx context.Context) error {
	var errs []error
	for _, part := range g.parts {
		errs = append(errs, part.Shutdown(ctx))
	}
	return errors.Join(append(errs, g.telemetry.Shutdown(ctx))...)
}

// learn gives the timeline what nodes measure of their clocks while the job runs.
func (g *gateway) learn(r *recording.Recording) error {
	for at := r.From; at < r.Until+int64(recording.ProbeWindow); at += int64(recording.ProbeWindow) {
		for node := range r.Ranks / recording.PerNode {
			for _, edge := range recording.Edges(node, at) {
				if err := g.timeline.AddEdge(edge); err != nil {
					return fmt.Errorf("learn clocks: %w", err)
				}
			}
		}
		g.timeline.Advance(time.Now())
	}
	return nil
}
