// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// The tables of docs/format/clock-events.md have the attributes that are written,
// with their types, and no others; its example is read.
func TestFormatIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/format/clock-events.md")
	require.NoError(t, err)
	edge, mod := plog.NewLogRecord(), plog.NewLogRecord()
	EdgeToLog(&model.ClockEdge{Src: "a", Dst: "b", Sigma: 1, DriftBound: 1, Stamps: "kernel", Stepped: true, Prompt: true, Contradicted: 1}, edge)
	ModelToLog(&model.ClockModel{Sigma: 1, Stepped: true, Untrusted: true, Undated: true}, mod)
	for heading, lr := range map[string]plog.LogRecord{"## `lockstep.clock.edge`": edge, "## `lockstep.clock.model`": mod} {
		_, section, ok := strings.Cut(string(text), heading)
		require.True(t, ok)
		section, _, _ = strings.Cut(section, "\n## ")
		assert.Equal(t, written(lr.Attributes()), documented(section), heading)
	}

	_, sample, ok := strings.Cut(string(text), "```json\n")
	require.True(t, ok)
	sample, _, _ = strings.Cut(sample, "```")
	ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs([]byte(sample))
	require.NoError(t, err)
	got, ok, err := LogToEdge(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0))
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, model.ClockEdge{Src: "host:a/b1/raw", Dst: "host:b/b7/raw", At: 5_000_000_000, Lower: -1200, Upper: 800, Source: model.EdgeProbe, Stamps: model.StampKernel}, got)
	assert.NoError(t, graph.Check(&got), "it is taken")
}

// written are the types of attributes by name.
func written(m pcommon.Map) map[string]string {
	types := map[pcommon.ValueType]string{
		pcommon.ValueTypeStr: "string", pcommon.ValueTypeInt: "int", pcommon.ValueTypeDouble: "double", pcommon.ValueTypeBool: "bool",
	}
	out := map[string]string{}
	for name, v := range m.All() {
		out[name] = types[v.Type()]
	}
	return out
}

// documented are the same of the rows of a table, whose first two columns are names
// and their types: one for all or one for each.
func documented(section string) map[string]string {
	out := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`lockstep[^|]*) \\| ([a-z, ]+) \\|").FindAllStringSubmatch(section, -1) {
		types := strings.Split(row[2], ", ")
		for i, name := range strings.Split(row[1], ", ") {
			out[strings.Trim(name, "`")] = types[min(i, len(types)-1)]
		}
	}
	return out
}
