// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// ModelToLog writes a solved model as a log event, at the time on its timeline at
// which its offset holds. The event of an undated model has no time.
func ModelToLog(c *model.ClockModel, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventClockModel)
	if !c.Undated {
		at := pcommon.Timestamp(max(0, c.Time(c.At)))
		lr.SetTimestamp(at)
		lr.SetObservedTimestamp(at)
	}
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	lr.Body().SetStr(modelSentence(c))
	m := lr.Attributes()
	m.EnsureCapacity(15)
	m.PutStr(semconv.ClockID, c.Clock)
	m.PutStr(semconv.ClockTimeline, c.Timeline)
	m.PutInt(semconv.ModelFromNano, c.From)
	m.PutInt(semconv.ModelUntilNano, c.Until)
	m.PutInt(semconv.EdgeAtNano, c.At)
	m.PutDouble(semconv.ClockOffset, float64(c.Offset)/1e9)
	m.PutInt(semconv.ModelOffsetNano, c.Offset)
	m.PutDouble(semconv.EdgeDrift, c.Drift*1e6)
	if c.Bound != model.NoBound {
		m.PutDouble(semconv.ClockBound, secondsUp(c.Bound))
		m.PutInt(semconv.ModelBoundNano, c.Bound)
		m.PutDouble(semconv.ModelGrowth, c.Growth*1e6)
	}
	if c.Sigma > 0 {
		m.PutDouble(semconv.ClockSigma, c.Sigma/1e9)
	}
	if c.Stepped {
		m.PutBool(semconv.ClockStep, true)
	}
	if c.Untrusted {
		m.PutBool(semconv.ClockUntrusted, true)
	}
	if c.Undated {
		m.PutBool(semconv.ModelUndated, true)
	}
}

func modelSentence(c *model.ClockModel) string {
	switch {
	case c.Untrusted:
		return c.Clock + ": contradicts the others and is not corrected"
	case c.Bound == model.NoBound:
		return fmt.Sprintf("%s: %v to %s, not bounded", c.Clock, time.Duration(c.Offset), c.Timeline)
	default:
		return fmt.Sprintf("%s: %v ± %v to %s", c.Clock, time.Duration(c.Offset), time.Duration(c.Bound), c.Timeline)
	}
}

// LogToModel reads a model; false where the record is another event. One that
// contradicts itself is refused with the reason. Only attributes are read.
func LogToModel(lr plog.LogRecord) (c model.ClockModel, ok bool, err error) {
	if lr.EventName() != semconv.EventClockModel {
		return c, false, nil
	}
	r := reader{m: lr.Attributes()}
	c = model.ClockModel{
		Clock:     r.name(semconv.ClockID, model.CheckClockName),
		Timeline:  r.name(semconv.ClockTimeline, model.CheckTimelineName),
		Offset:    r.limit(semconv.ModelOffsetNano, semconv.ClockOffset, 0, nanos),
		Bound:     r.limit(semconv.ModelBoundNano, semconv.ClockBound, model.NoBound, nanosUp),
		Sigma:     r.size(semconv.ClockSigma) * 1e9,
		Growth:    r.size(semconv.ModelGrowth) / 1e6,
		Stepped:   r.truth(semconv.ClockStep),
		Untrusted: r.truth(semconv.ClockUntrusted),
		Undated:   r.truth(semconv.ModelUndated),
	}
	c.From, _ = r.integer(semconv.ModelFromNano)
	c.Until, _ = r.integer(semconv.ModelUntilNano)
	c.At, _ = r.integer(semconv.EdgeAtNano)
	drift, _ := r.number(semconv.EdgeDrift)
	c.Drift = drift / 1e6
	r.checkModel(&c)
	if r.err != nil {
		return model.ClockModel{}, true, fmt.Errorf("read model of %.80q: %w", c.Clock, r.err)
	}
	return c, true, nil
}

func (r *reader) checkModel(c *model.ClockModel) {
	switch {
	case c.From > c.Until:
		r.fail("check %s: got %d ns, above the end %d ns", semconv.ModelFromNano, c.From, c.Until)
	case c.Bound < 0:
		r.fail("check %s: got %d ns; want 0 or more", semconv.ModelBoundNano, c.Bound)
	}
}
