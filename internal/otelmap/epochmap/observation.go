package epochmap

import (
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// maxText bounds every text of an observation: a path is not longer.
const maxText = 4096

// JobToResource names the job whose saves are observed.
func JobToResource(id, name string, r pcommon.Resource) {
	m := r.Attributes()
	m.PutStr(semconv.JobID, id)
	if name != "" {
		m.PutStr(semconv.ServiceName, name)
	}
}

// ObservationToLog writes an observation as a log event. The job is the resource's.
func ObservationToLog(o *model.EpochObservation, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventEpochObservation)
	lr.SetTimestamp(pcommon.Timestamp(o.Time))
	lr.SetObservedTimestamp(pcommon.Timestamp(o.Time))
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	lr.Body().SetStr(sentence(o))
	m := lr.Attributes()
	m.EnsureCapacity(11)
	put := func(name, value string) {
		if value != "" {
			m.PutStr(name, value)
		}
	}
	put(semconv.EpochGeneration, o.Generation)
	m.PutInt(semconv.EpochSave, o.Save)
	m.PutStr(semconv.EpochDomainKind, string(o.Domain.Kind))
	put(semconv.EpochDomainID, o.Domain.ID)
	if o.Of > 0 {
		m.PutInt(semconv.EpochDomainOf, o.Of)
	}
	if o.Epoch.OK {
		m.PutInt(semconv.EpochHeld, o.Epoch.V)
	}
	m.PutStr(semconv.EpochState, string(o.State))
	put(semconv.EpochWitness, o.Witness)
	m.PutDouble(semconv.EpochConfidence, o.Confidence)
	put(semconv.EpochObserver, o.Observer)
	m.PutInt(semconv.EpochRevision, o.Revision)
}

func sentence(o *model.EpochObservation) string {
	text := fmt.Sprintf("save %d: %s", o.Save, o.Domain.Kind)
	if o.Domain.ID != "" {
		text += " of " + o.Domain.ID
	}
	text += ": " + string(o.State)
	switch {
	case o.State == model.DomainAbsent && o.Epoch.OK:
		text += fmt.Sprintf(", it held %d", o.Epoch.V)
	case o.Epoch.OK:
		text += fmt.Sprintf(", holds %d", o.Epoch.V)
	}
	return text
}

// states are those that are known.
var states = map[model.DomainState]bool{
	model.DomainTentative: true, model.DomainReflecting: true, model.DomainCommitted: true, model.DomainAbsent: true,
}

// LogToObservation reads an observation; ok is false where the record is another event. One that
// is not right is refused with the reason.
func LogToObservation(resource pcommon.Resource, lr plog.LogRecord) (o model.EpochObservation, ok bool, err error) {
	if lr.EventName() != semconv.EventEpochObservation {
		return o, false, nil
	}
	job, r := reader{m: resource.Attributes()}, reader{m: lr.Attributes()}
	o = model.EpochObservation{
		Time: int64(lr.Timestamp()), JobID: job.needed(semconv.JobID), Generation: r.text(semconv.EpochGeneration),
		Domain: model.Domain{Kind: model.DomainKind(r.needed(semconv.EpochDomainKind)), ID: r.text(semconv.EpochDomainID)},
		State:  model.DomainState(r.needed(semconv.EpochState)), Witness: r.text(semconv.EpochWitness), Observer: r.needed(semconv.EpochObserver),
	}
	var there bool
	if o.Save, there = r.integer(semconv.EpochSave); !there {
		r.fail("read attribute %s: got none; want one", semconv.EpochSave)
	}
	o.Of, _ = r.integer(semconv.EpochDomainOf)
	o.Epoch.V, o.Epoch.OK = r.integer(semconv.EpochHeld)
	o.Revision, _ = r.integer(semconv.EpochRevision)
	o.Confidence = r.share(semconv.EpochConfidence)
	switch {
	case r.err == nil && !states[o.State]:
		r.fail("read attribute %s: got %.20q; want tentative, reflecting, committed or absent", semconv.EpochState, o.State)
	case o.Of < 0:
		r.fail("read attribute %s: got %d; want 0 or more", semconv.EpochDomainOf, o.Of)
	}
	if job.err != nil {
		return o, true, job.err
	}
	return o, true, r.err
}

// reader reads attributes and keeps the first fault.
type reader struct {
	m   pcommon.Map
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) value(name string, want pcommon.ValueType) (pcommon.Value, bool) {
	v, ok := r.m.Get(name)
	if !ok {
		return v, false
	}
	if v.Type() != want {
		r.fail("read attribute %s: got type %s; want %s", name, v.Type(), want)
		return v, false
	}
	return v, true
}

func (r *reader) text(name string) string {
	v, ok := r.value(name, pcommon.ValueTypeStr)
	switch {
	case !ok:
		return ""
	case len(v.Str()) > maxText:
		r.fail("read attribute %s: got %d bytes; want at most %d", name, len(v.Str()), maxText)
		return ""
	case !utf8.ValidString(v.Str()):
		r.fail("read attribute %s: got what is no text: %.20q", name, v.Str())
		return ""
	}
	return v.Str()
}

// needed is a text that must be there.
func (r *reader) needed(name string) string {
	s := r.text(name)
	if s == "" {
		r.fail("read attribute %s: got none; want one", name)
	}
	return s
}

func (r *reader) integer(name string) (int64, bool) {
	if v, ok := r.value(name, pcommon.ValueTypeInt); ok {
		return v.Int(), true
	}
	return 0, false
}

// share is a number from 0 to 1, 1 where there is none.
func (r *reader) share(name string) float64 {
	v, ok := r.m.Get(name)
	if !ok {
		return 1
	}
	var f float64
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		f = v.Double()
	case pcommon.ValueTypeInt: // as some SDKs write 1.0
		f = float64(v.Int())
	default:
		r.fail("read attribute %s: got type %s; want %s", name, v.Type(), pcommon.ValueTypeDouble)
		return 0
	}
	if !(f >= 0 && f <= 1) {
		r.fail("read attribute %s: got %v; want 0 to 1", name, f)
		return 0
	}
	return f
}
