// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

const (
	typeStr    = pcommon.ValueTypeStr
	typeInt    = pcommon.ValueTypeInt
	typeDouble = pcommon.ValueTypeDouble
	typeBool   = pcommon.ValueTypeBool
	typeSlice  = pcommon.ValueTypeSlice
)

// The names and types of the data model, written out by hand: others read these
// from the wire, so a change of one must be meant.
var (
	resourceWire = map[string]pcommon.ValueType{
		"service.name": typeStr, "service.instance.id": typeStr, "host.name": typeStr, "host.id": typeStr,
		"lockstep.job.id": typeStr, "lockstep.job.incarnation": typeStr,
		"lockstep.rank": typeInt, "lockstep.local_rank": typeInt, "lockstep.world_size": typeInt,
		"lockstep.parallel.dp.rank": typeInt, "lockstep.parallel.pp.rank": typeInt, "lockstep.parallel.tp.rank": typeInt,
		"lockstep.parallel.cp.rank": typeInt, "lockstep.parallel.ep.rank": typeInt,
		"hw.id": typeStr, "hw.type": typeStr, "process.pid": typeInt, "lockstep.clock.id": typeStr,
		"lockstep.clock.epoch_unix_nano": typeInt,
	}
	spanWire = map[string]pcommon.ValueType{
		"lockstep.step": typeInt, "lockstep.phase": typeStr, "lockstep.op.kind": typeStr, "lockstep.op.key": typeStr, "lockstep.op.seq": typeInt,
		"lockstep.op.group": typeInt, "lockstep.op.end.inferred": typeBool, "lockstep.graph.captured": typeBool,
		"lockstep.work.bytes": typeInt, "lockstep.work.tokens": typeInt, "lockstep.work.grid": typeStr,
		"lockstep.stream.id": typeInt, "thread.id": typeInt, "lockstep.step.ops": typeInt,
		"lockstep.correlation.id": typeInt, "lockstep.launch.time_unix_nano": typeInt,
		"lockstep.microbatch": typeInt, "lockstep.model_chunk": typeInt,
		"lockstep.comm.id": typeStr, "lockstep.comm.name": typeStr, "lockstep.comm.digest": typeStr, "lockstep.comm.size": typeInt, "lockstep.comm.rank": typeInt,
		"lockstep.collective.name": typeStr, "lockstep.collective.seq": typeInt, "lockstep.collective.seq.scope": typeStr,
		"lockstep.collective.bytes": typeInt, "lockstep.collective.dtype": typeStr, "lockstep.collective.root": typeInt,
		"lockstep.collective.algo": typeStr, "lockstep.collective.proto": typeStr, "lockstep.collective.channels": typeInt, "lockstep.collective.state": typeStr,
		"lockstep.peer": typeInt, "lockstep.peer.local": typeInt,
		"lockstep.wait.gpu": typeDouble, "lockstep.wait.peer": typeDouble, "lockstep.wait.wire": typeDouble, "lockstep.wait.flush": typeDouble,
		"lockstep.wait.wire.steps": typeInt,
		"code.stacktrace":          typeStr, "lockstep.clock.id": typeStr,
		"lockstep.clock.offset": typeDouble, "lockstep.clock.bound": typeDouble, "lockstep.clock.sigma": typeDouble, "lockstep.clock.timeline": typeStr,
		"lockstep.clock.raw_start_unix_nano": typeInt, "lockstep.clock.step": typeBool,
		"lockstep.causality.verdict": typeStr, "lockstep.causality.magnitude": typeDouble,
		"lockstep.straggler.class": typeStr, "lockstep.straggler.excess": typeDouble,
		"lockstep.wait.owed_to": typeInt, "lockstep.wait.suffered.seconds": typeDouble,
	}
	findingWire = map[string]pcommon.ValueType{
		"service.name": typeStr, "lockstep.job.id": typeStr, "lockstep.job.incarnation": typeStr,
		"lockstep.finding.kind": typeStr, "lockstep.finding.class": typeStr, "lockstep.finding.cause": typeStr,
		"lockstep.finding.id": typeStr, "lockstep.finding.revision": typeInt, "lockstep.finding.status": typeStr,
		"lockstep.finding.start_unix_nano": typeInt,
		"lockstep.finding.rank":            typeInt, "lockstep.finding.host": typeStr, "lockstep.finding.hw.id": typeStr, "lockstep.finding.op": typeStr,
		"lockstep.finding.comm.id": typeStr, "lockstep.finding.comm.name": typeStr, "lockstep.finding.peer": typeInt, "lockstep.finding.link": typeStr, "lockstep.finding.clock": typeStr,
		"lockstep.finding.ranks": typeSlice, "lockstep.finding.ranks.count": typeInt,
		"lockstep.finding.waiting": typeSlice, "lockstep.finding.waiting.count": typeInt, "lockstep.finding.waiting.through": typeInt,
		"lockstep.finding.candidates": typeSlice, "lockstep.finding.candidates.count": typeInt, "lockstep.finding.stack": typeStr,
		"lockstep.finding.step.first": typeInt, "lockstep.finding.step.last": typeInt, "lockstep.finding.before_window": typeBool,
		"lockstep.finding.cost.seconds": typeDouble, "lockstep.finding.cost.share": typeDouble, "lockstep.finding.cost.joint": typeDouble,
		"lockstep.finding.cost.at_least": typeDouble, "lockstep.finding.cost.at_most": typeDouble,
		"lockstep.finding.wait_caused.seconds": typeDouble, "lockstep.finding.wait_caused.share": typeDouble,
		"lockstep.finding.confidence": typeDouble, "lockstep.finding.evidence": typeStr, "lockstep.finding.action": typeStr,
		"lockstep.finding.links": typeSlice, "lockstep.incident.id": typeStr,
	}
)

// written returns what a fully filled rank, operation and finding become.
func written(t *testing.T) (resource, span, finding pcommon.Map) {
	t.Helper()
	rank, op, f := randomRank(t, 1, false), randomOp(t, 2, false), randomFinding(t, 3, false)
	td := OpsToTraces(&rank, []model.Op{op})
	lr := plog.NewLogRecord()
	FindingToLog(&f, lr)
	return td.ResourceSpans().At(0).Resource().Attributes(), firstSpan(td).Attributes(), lr.Attributes()
}

func TestWireNamesAndTypes(t *testing.T) {
	resource, span, finding := written(t)
	assert.Equal(t, resourceWire, typesOf(resource))
	assert.Equal(t, spanWire, typesOf(span))
	assert.Equal(t, findingWire, typesOf(finding))
}

func typesOf(m pcommon.Map) map[string]pcommon.ValueType {
	types := map[string]pcommon.ValueType{}
	for name, v := range m.All() {
		types[name] = v.Type()
	}
	return types
}

// TestEveryNameIsWritten fails when a name is added to internal/semconv that no
// mapping writes. Values of enumerations and of links are not attributes.
func TestEveryNameIsWritten(t *testing.T) {
	values := map[string]bool{semconv.LinkRelation: true, semconv.LinkLastArriver: true, semconv.LinkEvidence: true, semconv.LinkRequest: true, semconv.LinkStep: true}
	resource, span, finding := written(t)
	tests := []struct {
		file, block string
		m           pcommon.Map
	}{
		{"attributes.go", "Resource attributes of anything observed on a rank.\n", resource},
		{"attributes.go", "Operation span attributes.\n", span},
		{"attributes.go", "Attributes written by a clock correction.\n", span},
		{"attributes.go", "Attributes written by the straggler analysis on operation spans.\n", span},
		{"findings.go", "Finding attributes.\n", finding},
	}
	for _, tt := range tests {
		names := constBlock(t, "../semconv/"+tt.file, tt.block)
		require.NotEmpty(t, names, tt.block)
		for _, name := range names {
			_, ok := tt.m.Get(name)
			assert.True(t, ok || values[name], "nothing writes %s (%s)", name, tt.block)
		}
	}
}

// constBlock returns the string constants of the block under the given comment.
func constBlock(t *testing.T, file, comment string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	var names []string
	for _, decl := range parsed.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || g.Doc.Text() != comment {
			continue
		}
		for _, spec := range g.Specs {
			for _, v := range spec.(*ast.ValueSpec).Values {
				name, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				require.NoError(t, err)
				names = append(names, name)
			}
		}
	}
	return names
}
