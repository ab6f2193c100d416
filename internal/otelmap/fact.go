// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

var factFields = newTable(
	str(semconv.FactSource, func(f *model.Fact) *string { return &f.Source }),
	str(semconv.FactKind, func(f *model.Fact) *string { return &f.Kind }),
	flag(semconv.FactNetwork, func(f *model.Fact) *bool { return &f.Network }),
)

// AppendFact adds a fact of a rank to ld, as a log event under a resource of its own.
func AppendFact(ld plog.Logs, f *model.Fact) {
	lr := appendRankEvent(ld, &f.Rank, f.Time, semconv.EventHostFact)
	setSeverity(lr, model.SeverityWarn)
	lr.Body().SetStr(f.What)
	factFields.write(f, lr.Attributes())
}

// ofNode are kinds of facts that are a node's and no rank's.
var ofNode = map[string]bool{model.FactVersion: true, model.FactDriverMismatch: true, model.FactFabricManagerMismatch: true}

// LogToFact reads it; false where the record is another event, a fact of a node, or its resource
// names no rank.
func LogToFact(resource pcommon.Resource, lr plog.LogRecord, p *Problems) (model.Fact, bool) {
	if lr.EventName() != semconv.EventHostFact {
		return model.Fact{}, false
	}
	if kind, ok := lr.Attributes().Get(semconv.FactKind); ok && ofNode[scalar(kind)] {
		return model.Fact{}, false
	}
	r, ok := ResourceToRank(resource, p)
	if !ok {
		p.add(nil, fmt.Sprintf("fact was left out: its resource names no rank: %.80q", scalar(lr.Body())))
		return model.Fact{}, false
	}
	f := model.Fact{Rank: r, What: cut.Bytes(scalar(lr.Body()), cut.MaxName), Time: int64(lr.Timestamp())}
	factFields.read(&f, lr.Attributes(), p.notes(&r.Rank))
	return f, true
}
