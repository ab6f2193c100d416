// SPDX-License-Identifier: Apache-2.0

package epochmap

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/strict"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

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
	m.EnsureCapacity(15)
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
	if o.Parts > 0 {
		m.PutInt(semconv.EpochParts, o.Parts)
	}
	if o.Epoch.OK {
		m.PutInt(semconv.EpochHeld, o.Epoch.V)
	}
	m.PutStr(semconv.EpochState, string(o.State))
	put(semconv.EpochWitness, o.Witness)
	m.PutDouble(semconv.EpochConfidence, o.Confidence)
	put(semconv.EpochObserver, o.Observer)
	if o.Life != 0 {
		m.PutInt(semconv.EpochLife, o.Life)
	}
	m.PutInt(semconv.EpochRevision, o.Revision)
	if o.FirstWrite > 0 {
		m.PutInt(semconv.EpochFirstWrite, o.FirstWrite)
	}
	if o.Blind {
		m.PutBool(semconv.EpochBlind, true)
	}
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
	model.DomainWithdrawn: true,
}

// LogToObservation reads an observation; ok is false where the record is another event. One that
// is not right is refused with the reason.
func LogToObservation(resource pcommon.Resource, lr plog.LogRecord) (o model.EpochObservation, ok bool, err error) {
	if lr.EventName() != semconv.EventEpochObservation {
		return o, false, nil
	}
	job, r := strict.Reader{M: resource.Attributes()}, strict.Reader{M: lr.Attributes()}
	o = model.EpochObservation{
		Time: int64(lr.Timestamp()), JobID: job.Needed(semconv.JobID), Generation: r.Text(semconv.EpochGeneration),
		Domain: model.Domain{Kind: model.DomainKind(r.Needed(semconv.EpochDomainKind)), ID: r.Text(semconv.EpochDomainID)},
		State:  model.DomainState(r.Needed(semconv.EpochState)), Witness: r.Text(semconv.EpochWitness), Observer: r.Needed(semconv.EpochObserver),
	}
	var there bool
	if o.Save, there = r.Integer(semconv.EpochSave); !there {
		r.Fail("read attribute %s: got none; want one", semconv.EpochSave)
	}
	o.Of, _ = r.Integer(semconv.EpochDomainOf)
	o.Parts, _ = r.Integer(semconv.EpochParts)
	o.Life, _ = r.Integer(semconv.EpochLife)
	o.Epoch.V, o.Epoch.OK = r.Integer(semconv.EpochHeld)
	o.Revision, _ = r.Integer(semconv.EpochRevision)
	o.FirstWrite, _ = r.Integer(semconv.EpochFirstWrite)
	o.Blind = r.Flag(semconv.EpochBlind)
	o.Confidence = r.Share(semconv.EpochConfidence)
	switch {
	case r.Err == nil && !states[o.State]:
		r.Fail("read attribute %s: got %.20q; want tentative, reflecting, committed, absent or withdrawn", semconv.EpochState, o.State)
	case o.Of < 0:
		r.Fail("read attribute %s: got %d; want 0 or more", semconv.EpochDomainOf, o.Of)
	case o.FirstWrite < 0:
		r.Fail("read attribute %s: got %d; want 0 or more", semconv.EpochFirstWrite, o.FirstWrite)
	case o.Parts < 0:
		r.Fail("read attribute %s: got %d; want 0 or more", semconv.EpochParts, o.Parts)
	}
	if job.Err != nil {
		return o, true, job.Err
	}
	return o, true, r.Err
}
