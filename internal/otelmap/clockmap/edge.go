// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// EdgeToLog writes an edge as a log event. The record's timestamps are the
// caller's, who knows when the window was: an edge has readings of clocks only.
func EdgeToLog(e *model.ClockEdge, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventClockEdge)
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	lr.Body().SetStr(edgeSentence(e))
	m := lr.Attributes()
	m.EnsureCapacity(19)
	m.PutStr(semconv.EdgeSrc, e.Src)
	m.PutStr(semconv.EdgeDst, e.Dst)
	if e.Lower != model.NoLower {
		m.PutDouble(semconv.EdgeLower, secondsDown(e.Lower))
		m.PutInt(semconv.EdgeLowerNano, e.Lower)
	}
	if e.Upper != model.NoUpper {
		m.PutDouble(semconv.EdgeUpper, secondsUp(e.Upper))
		m.PutInt(semconv.EdgeUpperNano, e.Upper)
	}
	if e.Sigma > 0 {
		m.PutInt(semconv.EdgeEstimateNano, e.Offset)
		m.PutDouble(semconv.ClockSigma, e.Sigma/1e9)
	}
	m.PutInt(semconv.EdgeAtNano, e.At)
	if e.DriftBound > 0 {
		m.PutDouble(semconv.EdgeDrift, e.Drift*1e6)
		m.PutDouble(semconv.EdgeDriftBound, e.DriftBound*1e6)
	}
	m.PutInt(semconv.EdgeSamples, e.Samples)
	m.PutDouble(semconv.EdgeWindow, float64(e.Span)/1e9)
	m.PutStr(semconv.EdgeSource, e.Source)
	if e.Stamps != "" {
		m.PutStr(semconv.EdgeStamps, e.Stamps)
	}
	if e.Stepped {
		m.PutBool(semconv.ClockStep, true)
	}
	if e.Prompt {
		m.PutBool(semconv.EdgePrompt, true)
	}
	if e.Contradicted > 0 {
		m.PutInt(semconv.EdgeContradictedNano, e.Contradicted)
	}
}

func edgeSentence(e *model.ClockEdge) string {
	switch {
	case e.Lower == model.NoLower && e.Upper == model.NoUpper:
		return fmt.Sprintf("%s to %s: offset not bounded", e.Src, e.Dst)
	case e.Lower == model.NoLower:
		return fmt.Sprintf("%s to %s: offset at most %v", e.Src, e.Dst, time.Duration(e.Upper))
	case e.Upper == model.NoUpper:
		return fmt.Sprintf("%s to %s: offset at least %v", e.Src, e.Dst, time.Duration(e.Lower))
	default:
		return fmt.Sprintf("%s to %s: offset between %v and %v", e.Src, e.Dst, time.Duration(e.Lower), time.Duration(e.Upper))
	}
}

// LogToEdge reads an edge; false where the record is another event. An edge that
// contradicts itself is refused with the reason, but for bounds that cross: who adds
// it refuses those, and remembers the two clocks. Only attributes are read.
func LogToEdge(lr plog.LogRecord) (e model.ClockEdge, ok bool, err error) {
	if lr.EventName() != semconv.EventClockEdge {
		return e, false, nil
	}
	r := reader{m: lr.Attributes()}
	e = model.ClockEdge{
		Src:     r.name(semconv.EdgeSrc, model.CheckClockName),
		Dst:     r.name(semconv.EdgeDst, model.CheckClockName),
		Lower:   r.limit(semconv.EdgeLowerNano, semconv.EdgeLower, model.NoLower, nanosDown),
		Upper:   r.limit(semconv.EdgeUpperNano, semconv.EdgeUpper, model.NoUpper, nanosUp),
		Source:  r.word(semconv.EdgeSource),
		Stamps:  r.word(semconv.EdgeStamps),
		Stepped: r.truth(semconv.ClockStep),
		Prompt:  r.truth(semconv.EdgePrompt),
	}
	var dated bool
	if e.At, dated = r.integer(semconv.EdgeAtNano); !dated {
		r.fail("read attribute %s: got none; want the reading of the source", semconv.EdgeAtNano)
	}
	e.Samples, _ = r.integer(semconv.EdgeSamples)
	e.Contradicted, _ = r.integer(semconv.EdgeContradictedNano)
	r.estimate(&e)
	r.drift(&e)
	r.span(&e)
	r.checkEdge(&e)
	if r.err != nil {
		return model.ClockEdge{}, true, fmt.Errorf("read edge %.80q to %.80q: %w", e.Src, e.Dst, r.err)
	}
	return e, true, nil
}

func (r *reader) estimate(e *model.ClockEdge) {
	if sigma := r.size(semconv.ClockSigma); sigma > 0 {
		if offset, ok := r.integer(semconv.EdgeEstimateNano); ok {
			e.Offset, e.Sigma = offset, sigma*1e9
		}
	}
}

func (r *reader) drift(e *model.ClockEdge) {
	if bound := r.size(semconv.EdgeDriftBound); bound > 0 {
		drift, _ := r.number(semconv.EdgeDrift)
		e.Drift, e.DriftBound = drift/1e6, bound/1e6
	}
}

func (r *reader) span(e *model.ClockEdge) {
	seconds := r.size(semconv.EdgeWindow)
	span, fits := nanos(seconds)
	if !fits {
		r.fail("read attribute %s: got %v s; want what fits into 64 bits of ns", semconv.EdgeWindow, seconds)
	}
	e.Span = span
}

func (r *reader) checkEdge(e *model.ClockEdge) {
	switch {
	case e.Src == e.Dst:
		r.fail("check %s: got the source %q again; want another clock", semconv.EdgeDst, e.Dst)
	case e.Sigma > 0 && e.Lower <= e.Upper && (e.Offset < e.Lower || e.Offset > e.Upper):
		r.fail("check %s: got %d ns; want between %d ns and %d ns", semconv.EdgeEstimateNano, e.Offset, e.Lower, e.Upper)
	case e.Samples < 0:
		r.fail("check %s: got %d; want 0 or more", semconv.EdgeSamples, e.Samples)
	case e.Contradicted < 0:
		r.fail("check %s: got %d; want 0 or more", semconv.EdgeContradictedNano, e.Contradicted)
	}
}
