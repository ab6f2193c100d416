// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// feed gives the watches one thing that was read.
type feed func(now time.Time)

// recordBytes is what a record takes beside its texts.
const recordBytes = 1 << 10

// read reads what records show of saves, of versions, of ranks that compute together, and of what mixed.
func (w *watches) read(ld plog.Logs) hub.Input {
	now, size := time.Now(), 0
	var feeds []feed
	for _, rl := range ld.ResourceLogs().All() {
		before := len(feeds)
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				bytes, f, err := w.record(rl.Resource(), lr, now)
				switch {
				case err != nil:
					w.unread.Add(1)
					w.why.CompareAndSwap(nil, &err)
				case f != nil:
					feeds, size = append(feeds, f), size+recordBytes+sizer.LogRecordSize(lr)+bytes
				case bytes == foreign:
					w.foreign.Add(1)
				}
			}
		}
		if len(feeds) > before {
			size += textBytes(rl.Resource().Attributes())
		}
	}
	if len(feeds) == 0 {
		return hub.Input{}
	}
	return hub.Input{Bytes: size, Apply: func(time.Time) hub.Output {
		for _, f := range feeds {
			f(now)
		}
		return hub.Output{}
	}}
}

// sizer measures records: a feed keeps the texts of its record alive.
var sizer plog.ProtoMarshaler

// textBytes is the size of the texts that the records of a resource share.
func textBytes(m pcommon.Map) (n int) {
	for _, v := range m.All() {
		if v.Type() == pcommon.ValueTypeStr {
			n += len(v.Str())
		}
	}
	return n
}

// foreign in place of a size: a record is about none of these.
const foreign = -1

// record reads one record, and returns the bytes that its feed takes beside the record. A record without a feed
// and without an error brings nothing new, or is foreign.
func (w *watches) record(of pcommon.Resource, lr plog.LogRecord, now time.Time) (bytes int, f feed, err error) {
	switch lr.EventName() {
	case semconv.EventEpochObservation:
		return w.observation(of, lr)
	case semconv.EventHostFact:
		o, ok, err := versionmap.LogToVersion(of, lr)
		if !ok || err != nil {
			return foreign, nil, err
		}
		return 0, func(now time.Time) { w.fleet.Observe(&o, now) }, nil
	case semconv.EventRankState, semconv.EventRankMembers:
		return w.state(of, lr, now)
	case semconv.EventRankResumed:
		v, _, err := resumemap.FromLog(of, lr)
		return 0, func(now time.Time) { w.resume.Observe(&v, now) }, err
	case semconv.EventRankFingerprint:
		v, _, err := resumemap.FingerprintFromLog(of, lr)
		return 0, func(now time.Time) { w.replicas.Observe(&v, now) }, err
	default:
		return w.line(of, lr)
	}
}

func (w *watches) observation(of pcommon.Resource, lr plog.LogRecord) (int, feed, error) {
	o, ok, err := epochmap.LogToObservation(of, lr)
	if !ok || err != nil {
		return foreign, nil, err
	}
	name, named := "", false
	if v, ok := of.Attributes().Get(semconv.ServiceName); ok {
		name, named = cut.Text(v.AsString(), cut.MaxName), true
	}
	return 0, func(now time.Time) {
		w.saves.Observe(&o, now)
		if named {
			w.saves.Name(cut.Text(o.JobID, cut.MaxName), name)
		}
	}, nil
}

// state reads the communicators that a rank is a member of. Of a rank that was seen just now nothing is
// read.
func (w *watches) state(of pcommon.Resource, lr plog.LogRecord, now time.Time) (int, feed, error) {
	var problems otelmap.Problems
	w.reading.Lock()
	defer w.reading.Unlock()
	if source, ok := lr.Attributes().Get(semconv.RankStateSource); ok {
		if r, known := otelmap.ResourceToRank(of, &problems); known && w.knows(&r, model.StateSource(source.AsString()), now) {
			return 0, nil, nil
		}
		problems = otelmap.Problems{} // they are met again
	}
	if s, ok := otelmap.LogToRankMembers(of, lr, &w.states, &problems); ok {
		return s.Bytes(), func(now time.Time) { w.fleet.AddState(&s, now) }, nil
	}
	if list := problems.List(); len(list) > 0 {
		return 0, nil, errors.New(list[0].What)
	}
	return 0, nil, nil
}

func (w *watches) knows(r *model.Rank, source model.StateSource, now time.Time) bool {
	if !w.lock.TryLock() {
		return false // a sender does not wait for a judgement
	}
	defer w.lock.Unlock()
	return w.fleet.Knows(r, source, now)
}
