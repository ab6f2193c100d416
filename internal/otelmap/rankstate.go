// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// AppendRankState adds a rank's state to ld, as a log event under a resource of its own.
func AppendRankState(ld plog.Logs, s *model.RankState) {
	lr := appendRankEvent(ld, &s.Rank, s.Time, semconv.EventRankState)
	open, age := openOf(s)
	level := model.SeverityInfo
	if s.Process == model.ProcessDead {
		level = model.SeverityError
	}
	setSeverity(lr, level)
	lr.Body().SetStr(stateSentence(s, open, age))
	m := lr.Attributes()
	putKnown(m, semconv.RankStateSource, string(s.Source))
	putKnown(m, semconv.RankStateName, s.Name)
	putKnown(m, semconv.RankStatePartial, s.Partial)
	putKnown(m, semconv.RankStateProcess, string(s.Process))
	putKnown(m, semconv.Phase, s.Phase)
	m.PutInt(semconv.RankStateOpen, open)
	if age.OK {
		m.PutDouble(semconv.RankStateAge, age.V)
	}
	m.PutEmptyBytes(semconv.RankStateData).FromRaw(rankstate.Encode(s))
}

// AppendRankMembers adds to ld which communicators a rank is a member of, as s has them.
func AppendRankMembers(ld plog.Logs, s *model.RankState) {
	lr := appendRankEvent(ld, &s.Rank, s.Time, semconv.EventRankMembers)
	setSeverity(lr, model.SeverityInfo)
	lr.Body().SetStr(fmt.Sprintf("rank %d is a member of %s", s.Rank.Rank, report.Plural(int64(len(s.Comms)), "communicator")))
	putKnown(lr.Attributes(), semconv.RankStateSource, string(s.Source))
	lr.Attributes().PutEmptyBytes(semconv.RankStateData).FromRaw(rankstate.Encode(s))
}

// LogToRankState reads a rank's state; false where the record is another event, or none that
// can be read. The resource names the rank, where it names one. States that are read with one decoder
// share what they have in common; nil shares nothing.
func LogToRankState(resource pcommon.Resource, lr plog.LogRecord, d *rankstate.Decoder, p *Problems) (model.RankState, bool) {
	if lr.EventName() != semconv.EventRankState {
		return model.RankState{}, false
	}
	return readState(resource, lr, d, p)
}

// LogToRankMembers reads of which communicators a rank is a member, from such an event or from its
// whole state, as LogToRankState does; false where the record is another event, or none that can be read.
func LogToRankMembers(resource pcommon.Resource, lr plog.LogRecord, d *rankstate.Decoder, p *Problems) (model.RankState, bool) {
	if lr.EventName() != semconv.EventRankState && lr.EventName() != semconv.EventRankMembers {
		return model.RankState{}, false
	}
	return readState(resource, lr, d, p)
}

func readState(resource pcommon.Resource, lr plog.LogRecord, d *rankstate.Decoder, p *Problems) (model.RankState, bool) {
	if d == nil {
		d = &rankstate.Decoder{}
	}
	v, ok := lr.Attributes().Get(semconv.RankStateData)
	if !ok || v.Type() != pcommon.ValueTypeBytes {
		p.add(nil, "rank state without "+semconv.RankStateData+" was left out")
		return model.RankState{}, false
	}
	s, err := d.Decode(v.Bytes().AsRaw())
	if err != nil {
		p.add(nil, "rank state was left out: "+err.Error())
		return model.RankState{}, false
	}
	of, ok := ResourceToRank(resource, p)
	switch {
	case !ok: // the record says everything itself
	case of.Rank != s.Rank.Rank:
		p.add(&of.Rank, fmt.Sprintf("rank state was left out: got rank %d; want its resource's", s.Rank.Rank))
		return model.RankState{}, false
	default:
		s.Rank = of
	}
	return s, true
}

// AppendAbsence adds to ld that there is no state of a rank. r says of which job, and what
// else is known of the rank.
func AppendAbsence(ld plog.Logs, r *model.Rank, a *model.Absence) {
	of := *r
	of.Rank = a.Rank
	lr := appendRankEvent(ld, &of, a.Time, semconv.EventRankAbsent)
	setSeverity(lr, model.SeverityWarn)
	text := fmt.Sprintf("rank %d: no state of it (%s)", a.Rank, a.Reason)
	if a.Detail != "" {
		text += ": " + a.Detail
	}
	lr.Body().SetStr(text)
	putKnown(lr.Attributes(), semconv.RankAbsentReason, string(a.Reason))
	putKnown(lr.Attributes(), semconv.RankAbsentDetail, a.Detail)
}

// LogToAbsence reads it; false where the record is another event or its resource names no
// rank.
func LogToAbsence(resource pcommon.Resource, lr plog.LogRecord, p *Problems) (model.Rank, model.Absence, bool) {
	if lr.EventName() != semconv.EventRankAbsent {
		return model.Rank{}, model.Absence{}, false
	}
	r, ok := ResourceToRank(resource, p)
	if !ok {
		p.add(nil, "absence of a rank was left out: its resource names none")
		return model.Rank{}, model.Absence{}, false
	}
	a := model.Absence{Rank: r.Rank, Time: int64(lr.Timestamp())}
	absenceFields.read(&a, lr.Attributes(), p.notes(&r.Rank))
	return r, a, true
}

var absenceFields = newTable(
	str(semconv.RankAbsentReason, func(a *model.Absence) *model.AbsenceReason { return &a.Reason }),
	str(semconv.RankAbsentDetail, func(a *model.Absence) *string { return &a.Detail }),
)

func appendRankEvent(ld plog.Logs, r *model.Rank, at int64, event string) plog.LogRecord {
	rl := ld.ResourceLogs().AppendEmpty()
	RankToResource(r, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(ScopeName)
	lr := sl.LogRecords().AppendEmpty()
	lr.SetEventName(event)
	if at > 0 {
		lr.SetTimestamp(pcommon.Timestamp(at))
		lr.SetObservedTimestamp(pcommon.Timestamp(at))
	}
	return lr
}

func setSeverity(lr plog.LogRecord, s model.Severity) {
	number, text := severity(s)
	lr.SetSeverityNumber(number)
	lr.SetSeverityText(text)
}

func putKnown(m pcommon.Map, name, value string) {
	if value != "" {
		m.PutStr(name, value)
	}
}

// openOf counts what is not over, and says how old the oldest of it is.
func openOf(s *model.RankState) (n int64, age optionalFloat) {
	oldest := int64(0)
	for i := range s.Ops {
		o := &s.Ops[i]
		if o.Done {
			continue
		}
		n++
		if o.Created > 0 && (oldest == 0 || o.Created < oldest) {
			oldest = o.Created
		}
	}
	if oldest > 0 && s.Time >= oldest {
		age = model.Some(float64(s.Time-oldest) / 1e9)
	}
	return n, age
}

// stateSentence says it for people.
func stateSentence(s *model.RankState, open int64, age optionalFloat) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d", s.Rank.Rank)
	if s.Process != "" && s.Process != model.ProcessRunning {
		fmt.Fprintf(&b, ": its process is %s", s.Process)
	}
	switch open {
	case 0:
		b.WriteString(": no operation is open")
	case 1:
		b.WriteString(": 1 operation is open")
	default:
		fmt.Fprintf(&b, ": %d operations are open", open)
	}
	if i := firstOpen(s); i >= 0 {
		o := &s.Ops[i]
		fmt.Fprintf(&b, ", the first %s %d", firstOf(o.Name, o.Recorded), o.Seq)
		if o.Comm < len(s.Comms) {
			fmt.Fprintf(&b, " of %s", firstOf(s.Comms[o.Comm].Comm.Name, s.Comms[o.Comm].Comm.ID))
		}
	}
	if age.OK {
		fmt.Fprintf(&b, ", for %v", spoken(age.V))
	}
	if s.Scope != "" {
		fmt.Fprintf(&b, "; the host is in %s for %v", s.Scope, spoken(s.ScopeFor.V))
	}
	if s.Silent.OK && s.Silent.V >= model.SilentAfter.Seconds() {
		fmt.Fprintf(&b, "; no sign of life of its process for %v", spoken(s.Silent.V))
	}
	if s.Partial != "" {
		fmt.Fprintf(&b, "; not whole: %s", s.Partial)
	}
	return b.String()
}

func firstOpen(s *model.RankState) int {
	for i := range s.Ops {
		if !s.Ops[i].Done {
			return i
		}
	}
	return -1
}
