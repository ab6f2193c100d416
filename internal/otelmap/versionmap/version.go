// SPDX-License-Identifier: Apache-2.0

package versionmap

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/strict"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// NodeToResource names the node of which versions are told.
func NodeToResource(name, id string, r pcommon.Resource) {
	put(r.Attributes(), semconv.HostName, name)
	put(r.Attributes(), semconv.HostID, id)
}

func put(m pcommon.Map, name, value string) {
	if value != "" {
		m.PutStr(name, value)
	}
}

// VersionToLog writes a version as a log event. The node is the resource's.
func VersionToLog(o *model.VersionObservation, lr plog.LogRecord) {
	begin(lr, o.Time, semconv.FactSourceFleet, model.FactVersion)
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	lr.Body().SetStr(sentence(o))
	m := lr.Attributes()
	m.PutStr(semconv.VersionDomain, string(o.Domain))
	m.PutStr(semconv.VersionValue, o.Version)
	put(m, semconv.VersionUnit, o.Unit)
	put(m, semconv.VersionModel, o.Model)
	m.PutInt(semconv.VersionUnits, o.Units)
	m.PutInt(semconv.VersionOf, o.Of)
	put(m, semconv.VersionWitness, o.Witness)
	m.PutInt(semconv.VersionLife, o.Life)
	m.PutInt(semconv.VersionRevision, o.Revision)
}

// FactToLog writes a fact of a node as a log event.
func FactToLog(f *model.NodeFact, lr plog.LogRecord) {
	begin(lr, f.Time, f.Source, f.Kind)
	lr.SetSeverityNumber(plog.SeverityNumberWarn)
	lr.SetSeverityText("WARN")
	lr.Body().SetStr(f.What)
}

func begin(lr plog.LogRecord, at int64, source, kind string) {
	lr.SetEventName(semconv.EventHostFact)
	lr.SetTimestamp(pcommon.Timestamp(at))
	lr.SetObservedTimestamp(pcommon.Timestamp(at))
	lr.Attributes().EnsureCapacity(11)
	lr.Attributes().PutStr(semconv.FactSource, source)
	lr.Attributes().PutStr(semconv.FactKind, kind)
}

func sentence(o *model.VersionObservation) string {
	text := fmt.Sprintf("%s %s", o.Domain, o.Version)
	switch {
	case o.Unit != "":
		text += " of " + o.Unit
	case o.Units > 1:
		text += fmt.Sprintf(" of all %d", o.Units)
	}
	if o.Model != "" {
		text += fmt.Sprintf(" (%s)", o.Model)
	}
	return text
}

// LogToVersion reads a version; ok is false where the record is another event. One that is not
// right is refused with the reason.
func LogToVersion(resource pcommon.Resource, lr plog.LogRecord) (o model.VersionObservation, ok bool, err error) {
	kind, known := lr.Attributes().Get(semconv.FactKind)
	if lr.EventName() != semconv.EventHostFact || !known || kind.AsString() != model.FactVersion {
		return o, false, nil
	}
	node, r := strict.Reader{M: resource.Attributes()}, strict.Reader{M: lr.Attributes()}
	o = model.VersionObservation{
		Time: int64(lr.Timestamp()), HostName: node.Text(semconv.HostName), HostID: node.Text(semconv.HostID),
		Domain: model.VersionDomain(r.Needed(semconv.VersionDomain)), Version: r.Needed(semconv.VersionValue),
		Unit: r.Text(semconv.VersionUnit), Model: r.Text(semconv.VersionModel), Witness: r.Text(semconv.VersionWitness),
	}
	number := func(name string, least int64) int64 {
		v, there := r.Integer(name)
		if !there || v < least {
			r.Fail("read attribute %s: got %d; want at least %d", name, v, least)
		}
		return v
	}
	o.Units, o.Of = number(semconv.VersionUnits, 1), number(semconv.VersionOf, 1)
	o.Life, o.Revision = number(semconv.VersionLife, 1), number(semconv.VersionRevision, 1)
	switch {
	case node.Err != nil:
		return o, true, node.Err
	case o.HostName == "" && o.HostID == "":
		r.Fail("read resource: got neither %s nor %s; want one", semconv.HostName, semconv.HostID)
	case o.Time <= 0:
		r.Fail("read timestamp: got none; want when it was looked")
	case !slices.Contains(model.VersionDomains, o.Domain):
		r.Fail("read attribute %s: got %.40q; want one that is known", semconv.VersionDomain, o.Domain)
	}
	return o, true, r.Err
}
