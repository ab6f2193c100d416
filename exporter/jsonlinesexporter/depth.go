// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	// maxLevels bounds how deep the lists and maps of a value are nested. A map takes 4 levels of JSON.
	// Readers refuse JSON beyond 100 levels or a few more, and one such value would cost its whole line.
	maxLevels = 16
	// cutMark stands for the list or map below the last level.
	cutMark = "(nested too deeply)"
)

// visit takes a value, and reports whether to look at further ones.
type visit func(pcommon.Value) bool

// cutNested returns data without values that are nested too deeply, and how many were cut. It changes
// only a copy: the data is of other components, too.
func cutNested[T interface{ CopyTo(T) }](data T, fresh func() T, each func(T, visit)) (out T, cut int64) {
	deep := false
	each(data, func(v pcommon.Value) bool {
		deep = deep || tooDeep(v, 0)
		return !deep
	})
	if !deep {
		return data, 0
	}
	out = fresh()
	data.CopyTo(out)
	each(out, func(v pcommon.Value) bool {
		cut += cutValue(v, 0)
		return true
	})
	return out, cut
}

// children yields the values in a list or a map.
func children(v pcommon.Value, f visit) {
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		for _, c := range v.Slice().All() {
			if !f(c) {
				return
			}
		}
	case pcommon.ValueTypeMap:
		attributes(v.Map(), f)
	default:
	}
}

func nests(v pcommon.Value) bool {
	return v.Type() == pcommon.ValueTypeSlice || v.Type() == pcommon.ValueTypeMap
}

// tooDeep reports whether a value at a level has more than maxLevels of them.
func tooDeep(v pcommon.Value, level int) (deep bool) {
	if level == maxLevels {
		return nests(v)
	}
	children(v, func(c pcommon.Value) bool {
		deep = tooDeep(c, level+1)
		return !deep
	})
	return deep
}

// cutValue replaces the lists and maps below maxLevels by a mark, and returns how many those are.
func cutValue(v pcommon.Value, level int) (cut int64) {
	if level == maxLevels {
		if !nests(v) {
			return 0
		}
		v.SetStr(cutMark)
		return 1
	}
	children(v, func(c pcommon.Value) bool {
		cut += cutValue(c, level+1)
		return true
	})
	return cut
}

// attributes visits the values of attributes, and reports whether to look at further ones.
func attributes(m pcommon.Map, f visit) bool {
	for _, v := range m.All() {
		if !f(v) {
			return false
		}
	}
	return true
}

func eachOfTraces(td ptrace.Traces, f visit) {
	for _, rs := range td.ResourceSpans().All() {
		attributes(rs.Resource().Attributes(), f)
		for _, ss := range rs.ScopeSpans().All() {
			attributes(ss.Scope().Attributes(), f)
			for _, s := range ss.Spans().All() {
				if !eachOfSpan(s, f) {
					return
				}
			}
		}
	}
}

func eachOfSpan(s ptrace.Span, f visit) bool {
	more := attributes(s.Attributes(), f)
	for _, e := range s.Events().All() {
		more = more && attributes(e.Attributes(), f)
	}
	for _, l := range s.Links().All() {
		more = more && attributes(l.Attributes(), f)
	}
	return more
}

func eachOfLogs(ld plog.Logs, f visit) {
	for _, rl := range ld.ResourceLogs().All() {
		attributes(rl.Resource().Attributes(), f)
		for _, sl := range rl.ScopeLogs().All() {
			attributes(sl.Scope().Attributes(), f)
			for _, lr := range sl.LogRecords().All() {
				if !f(lr.Body()) || !attributes(lr.Attributes(), f) {
					return
				}
			}
		}
	}
}

func eachOfMetrics(md pmetric.Metrics, f visit) {
	for _, rm := range md.ResourceMetrics().All() {
		attributes(rm.Resource().Attributes(), f)
		for _, sm := range rm.ScopeMetrics().All() {
			attributes(sm.Scope().Attributes(), f)
			for _, m := range sm.Metrics().All() {
				if !attributes(m.Metadata(), f) || !eachOfPoints(m, f) {
					return
				}
			}
		}
	}
}

func eachOfPoints(m pmetric.Metric, f visit) (more bool) {
	more = true
	exemplars := func(es pmetric.ExemplarSlice) {
		for _, e := range es.All() {
			more = more && attributes(e.FilteredAttributes(), f)
		}
	}
	numbers := func(ps pmetric.NumberDataPointSlice) {
		for _, p := range ps.All() {
			more = more && attributes(p.Attributes(), f)
			exemplars(p.Exemplars())
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			more = more && attributes(p.Attributes(), f)
			exemplars(p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			more = more && attributes(p.Attributes(), f)
			exemplars(p.Exemplars())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			more = more && attributes(p.Attributes(), f)
		}
	default:
	}
	return more
}
