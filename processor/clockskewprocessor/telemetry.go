// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor/internal/metadata"
)

// observe registers the counters of the component's own telemetry, and the
// service level that they make.
func (p *skew) observe(set component.TelemetrySettings) error {
	t := p.telemetry
	var errs []error
	for _, c := range []struct {
		register func(metric.Int64Callback) error
		value    func(*causality.Stats) int64
	}{
		{t.RegisterProcessorClockSkewClocksOverflowCallback, func(s *causality.Stats) int64 { return s.ClocksOver }},
		{t.RegisterProcessorClockSkewEdgesCallback, func(s *causality.Stats) int64 { return s.Evidence.Edges }},
		{t.RegisterProcessorClockSkewEdgesRefusedCallback, func(s *causality.Stats) int64 { return s.Evidence.Refused }},
		{t.RegisterProcessorClockSkewOrdersOmittedCallback, func(s *causality.Stats) int64 { return s.OrderTooBig }},
		{t.RegisterProcessorClockSkewPartnersForgottenCallback, func(s *causality.Stats) int64 { return s.Forgotten + s.Crowded + s.Unmet }},
		{t.RegisterProcessorClockSkewRelationsCallback, func(s *causality.Stats) int64 { return s.Relations }},
		{t.RegisterProcessorClockSkewRelationsWidenedCallback, func(s *causality.Stats) int64 { return s.Widened }},
		{t.RegisterProcessorClockSkewSamplesCallback, func(s *causality.Stats) int64 { return s.Evidence.Samples }},
		{t.RegisterProcessorClockSkewSamplesLateCallback, func(s *causality.Stats) int64 { return s.Evidence.Late }},
		{t.RegisterProcessorClockSkewSamplesOverflowCallback, func(s *causality.Stats) int64 { return s.Evidence.Overflow }},
		{t.RegisterProcessorClockSkewSamplesRejectedCallback, func(s *causality.Stats) int64 { return s.Evidence.Liars }},
		{t.RegisterProcessorClockSkewSpansCallback, func(s *causality.Stats) int64 { return s.Spans }},
		{t.RegisterProcessorClockSkewSpansUnplacedCallback, func(s *causality.Stats) int64 { return s.NotPlaced }},
		{t.RegisterProcessorClockSkewSpansUntrustedCallback, func(s *causality.Stats) int64 { return s.Untrusted }},
		{t.RegisterProcessorClockSkewSpansWithheldCallback, func(s *causality.Stats) int64 { return s.Withheld }},
		{t.RegisterProcessorClockSkewSpansWithoutClockCallback, func(s *causality.Stats) int64 { return s.NoClock }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			if s, ok := p.stats(); ok {
				o.Observe(c.value(&s))
			}
			return nil
		}))
	}
	errs = append(errs, t.RegisterProcessorClockSkewClocksCallback(func(_ context.Context, o metric.Int64Observer) error {
		clocks := int64(0)
		p.instances.each(func(o *skew) { clocks += o.engine.Stats().Clocks })
		o.Observe(clocks)
		return nil
	}))
	return errors.Join(append(errs, p.observeCausality(set))...)
}

func (p *skew) stats() (causality.Stats, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine == nil {
		return causality.Stats{}, false
	}
	return p.engine.Stats(), true
}

// overflow marks the series of all jobs beyond the limit.
const overflow = "otel.metric.overflow"

// observeCausality registers the metrics that bear names of their own.
func (p *skew) observeCausality(set component.TelemetrySettings) error {
	meter := metadata.Meter(set)
	violations, err := meter.Int64ObservableCounter(semconv.MetricCausalityViolations, metric.WithUnit("{relation}"),
		metric.WithDescription("Relations between spans that are wrong on the stamps or on the timeline, by job and verdict."))
	if err != nil {
		return err
	}
	health, err := meter.Int64ObservableGauge(semconv.MetricCausalityHealth, metric.WithUnit("1"),
		metric.WithDescription("1 while no more than the limit of a job's relations in the window is certainly wrong, else 0."))
	if err != nil {
		return err
	}
	p.levels, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		p.violations(func(job, verdict attribute.KeyValue, n int64) {
			o.ObserveInt64(violations, n, metric.WithAttributes(job, verdict))
		})
		for name, l := range p.jobs() {
			value := int64(0)
			if l.bad <= l.allowed {
				value = 1
			}
			o.ObserveInt64(health, value, metric.WithAttributes(jobAttribute(name)))
		}
		return nil
	}, violations, health)
	return err
}

func jobAttribute(name string) attribute.KeyValue {
	if name == "" {
		return attribute.Bool(overflow, true)
	}
	return attribute.String(semconv.JobID, name)
}

// violations calls observe with what this instance has seen: counters of one series
// are added up.
func (p *skew) violations(observe func(job, verdict attribute.KeyValue, n int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine == nil {
		return
	}
	p.engine.Jobs(p.now(), func(j *causality.Job, _ bool) {
		for c := causality.Artefact; c <= causality.Introduced; c++ {
			observe(jobAttribute(j.Name), attribute.String(semconv.PointVerdict, causality.ClassName(c)), j.Counts[c])
		}
	})
}

// level is what all instances have seen of one job in the window.
type level struct{ bad, allowed float64 }

func (p *skew) jobs() map[string]level {
	out := map[string]level{}
	p.instances.each(func(o *skew) {
		o.engine.Jobs(o.now(), func(j *causality.Job, _ bool) {
			judged, bad := j.Recent(o.now())
			l := out[j.Name]
			out[j.Name] = level{l.bad + float64(bad), l.allowed + o.cfg.Health.Limit*float64(judged)}
		})
	})
	return out
}
