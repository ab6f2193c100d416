// SPDX-License-Identifier: Apache-2.0

package resumemap

import (
	"encoding/hex"
	"fmt"
	"unicode"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/strict"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Append adds a resume to ld, as a log event under the resource of its rank.
func Append(ld plog.Logs, v *model.Resume) {
	rl := ld.ResourceLogs().AppendEmpty()
	otelmap.RankToResource(&v.Rank, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	lr := sl.LogRecords().AppendEmpty()
	lr.SetEventName(semconv.EventRankResumed)
	lr.SetTimestamp(pcommon.Timestamp(v.Time))
	lr.SetObservedTimestamp(pcommon.Timestamp(v.Time))
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	lr.Body().SetStr(fmt.Sprintf("rank %d resumes from step %d", v.Rank.Rank, v.Step))
	m := lr.Attributes()
	m.EnsureCapacity(7)
	m.PutInt(semconv.ResumeStep, v.Step)
	if v.OptimizerStep.OK {
		m.PutInt(semconv.ResumeOptimizerStep, v.OptimizerStep.V)
	}
	for _, a := range [...]struct{ name, value string }{
		{semconv.ResumeDataCursor, v.DataCursor},
		{semconv.ResumeRNGDigest, v.RNGDigest},
		{semconv.ResumeReplica, v.Replica},
		{semconv.ResumeLife, v.Life},
	} {
		if a.value != "" {
			m.PutStr(a.name, a.value)
		}
	}
	m.PutInt(semconv.ResumeNumber, v.Number)
}

// FromLog reads a resume; ok is false where the record is another event. One that is not right is
// refused with the reason: nothing is compared with a part of it.
func FromLog(resource pcommon.Resource, lr plog.LogRecord) (v model.Resume, ok bool, err error) {
	if lr.EventName() != semconv.EventRankResumed {
		return v, false, nil
	}
	rank, err := rankOf(resource, semconv.EventRankResumed)
	if err != nil {
		return v, true, err
	}
	r := strict.Reader{M: lr.Attributes()}
	v = model.Resume{
		Rank: rank, Time: int64(lr.Timestamp()), Life: r.Needed(semconv.ResumeLife),
		Number: count(&r, semconv.ResumeNumber, 1, true).V,
		Step:   count(&r, semconv.ResumeStep, 0, true).V, OptimizerStep: count(&r, semconv.ResumeOptimizerStep, 0, false),
		DataCursor: text(&r, semconv.ResumeDataCursor), RNGDigest: r.Text(semconv.ResumeRNGDigest), Replica: text(&r, semconv.ResumeReplica),
	}
	if _, err := hex.DecodeString(v.RNGDigest); err != nil || len(v.RNGDigest)%32 != 0 || len(v.RNGDigest) > 32 {
		r.Fail("read attribute %s: got %.40q; want 32 hexadecimal digits", semconv.ResumeRNGDigest, v.RNGDigest)
	}
	if len(v.Life) > model.MaxResumeLife {
		r.Fail("read attribute %s: got %d bytes; want at most %d", semconv.ResumeLife, len(v.Life), model.MaxResumeLife)
	}
	return v, true, r.Err
}

// count reads a number from least on.
func count(r *strict.Reader, name string, least int64, needed bool) (n model.Optional[int64]) {
	n.V, n.OK = r.Integer(name)
	switch {
	case !n.OK && needed:
		r.Fail("read attribute %s: got none; want one", name)
	case n.OK && n.V < least:
		r.Fail("read attribute %s: got %d; want %d or more", name, n.V, least)
	}
	return n
}

func text(r *strict.Reader, name string) string {
	s := r.Text(name)
	if len(s) > model.MaxResumeText {
		r.Fail("read attribute %s: got %d bytes; want at most %d", name, len(s), model.MaxResumeText)
	}
	for _, c := range s {
		if unicode.IsControl(c) {
			r.Fail("read attribute %s: got %.40q; want no control characters", name, s)
			break
		}
	}
	return s
}
