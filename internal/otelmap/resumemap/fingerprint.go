// SPDX-License-Identifier: Apache-2.0

package resumemap

import (
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/strict"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// AppendFingerprints adds fingerprints of one rank to ld, as log events under its resource.
func AppendFingerprints(ld plog.Logs, of *model.Rank, prints []model.Fingerprint) {
	rl := ld.ResourceLogs().AppendEmpty()
	otelmap.RankToResource(of, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	for i := range prints {
		writeFingerprint(&prints[i], sl.LogRecords().AppendEmpty())
	}
}

func writeFingerprint(v *model.Fingerprint, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventRankFingerprint)
	lr.SetTimestamp(pcommon.Timestamp(v.Time))
	lr.SetObservedTimestamp(pcommon.Timestamp(v.Time))
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	hash := fmt.Sprintf("%016x", v.Hash)
	lr.Body().SetStr(fmt.Sprintf("parameters from %d on hash to %s after step %d", v.Start, hash, v.Step))
	m := lr.Attributes()
	m.EnsureCapacity(7)
	m.PutInt(semconv.Step, v.Step)
	m.PutStr(semconv.FingerprintHash, hash)
	m.PutInt(semconv.FingerprintStart, v.Start)
	m.PutInt(semconv.FingerprintTotal, v.Total)
	m.PutStr(semconv.FingerprintGroup, v.Group)
	if v.Replicas > 0 {
		m.PutInt(semconv.FingerprintReplicas, v.Replicas)
	}
	m.PutStr(semconv.FingerprintLife, v.Life)
}

// FingerprintFromLog reads a fingerprint; ok is false where the record is another event. One that is
// not right is refused with the reason.
func FingerprintFromLog(resource pcommon.Resource, lr plog.LogRecord) (v model.Fingerprint, ok bool, err error) {
	if lr.EventName() != semconv.EventRankFingerprint {
		return v, false, nil
	}
	rank, err := rankOf(resource, semconv.EventRankFingerprint)
	if err != nil {
		return v, true, err
	}
	r := strict.Reader{M: lr.Attributes()}
	v = model.Fingerprint{
		Rank: rank, Time: int64(lr.Timestamp()), Life: r.Needed(semconv.FingerprintLife), Step: count(&r, semconv.Step, 0, true).V,
		Start: count(&r, semconv.FingerprintStart, 0, true).V, Total: count(&r, semconv.FingerprintTotal, 0, true).V,
		Group: text(&r, semconv.FingerprintGroup), Replicas: count(&r, semconv.FingerprintReplicas, 1, false).V,
	}
	hash := r.Needed(semconv.FingerprintHash)
	if v.Hash, err = strconv.ParseUint(hash, 16, 64); err != nil || len(hash) != 16 {
		r.Fail("read attribute %s: got %.40q; want 16 hexadecimal digits", semconv.FingerprintHash, hash)
	}
	if v.Group == "" {
		r.Fail("read attribute %s: got none; want one", semconv.FingerprintGroup)
	}
	if len(v.Life) > model.MaxResumeLife {
		r.Fail("read attribute %s: got %d bytes; want at most %d", semconv.FingerprintLife, len(v.Life), model.MaxResumeLife)
	}
	return v, true, r.Err
}

// rankOf is the rank that an event is of.
func rankOf(resource pcommon.Resource, event string) (model.Rank, error) {
	var problems otelmap.Problems
	rank, known := otelmap.ResourceToRank(resource, &problems)
	list := problems.List()
	switch {
	case len(list) > 0:
		return rank, errors.New(list[0].What)
	case !known || rank.Rank < 0 || rank.Incarnation == "":
		return rank, fmt.Errorf("read %s: the resource names no rank of a job", event)
	}
	return rank, nil
}
