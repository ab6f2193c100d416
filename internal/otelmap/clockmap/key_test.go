// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func keyOfEdge(change func(*model.ClockEdge)) string {
	e := model.ClockEdge{Src: "host:a/b/raw", Dst: "host:c/d/raw", Source: model.EdgeProbe, Lower: -1, Upper: 1}
	change(&e)
	lr := plog.NewLogRecord()
	EdgeToLog(&e, lr)
	return Key(lr)
}

// What replaces another event has its key, and what does not has another one.
func TestKey_Events_AreToldApart(t *testing.T) {
	edge := keyOfEdge(func(*model.ClockEdge) {})
	assert.Equal(t, "lockstep.clock.edge\x00host:a/b/raw\x00host:c/d/raw\x00probe\x00", edge)
	assert.Equal(t, edge, keyOfEdge(func(e *model.ClockEdge) { e.At, e.Lower, e.Samples = 5, -7, 9 }))
	keys := map[string]bool{edge: true}
	for _, change := range []func(*model.ClockEdge){
		func(e *model.ClockEdge) { e.Src, e.Dst = e.Dst, e.Src },
		func(e *model.ClockEdge) { e.Dst += "2" },
		func(e *model.ClockEdge) { e.Source = model.EdgeCall },
		func(e *model.ClockEdge) { e.Prompt = true },
	} {
		keys[keyOfEdge(change)] = true
	}
	lr := plog.NewLogRecord()
	ModelToLog(&model.ClockModel{Clock: "host:a/b/raw", Timeline: "timeline:x"}, lr)
	assert.Equal(t, "lockstep.clock.model\x00host:a/b/raw\x00", Key(lr))
	keys[Key(lr)] = true
	assert.Len(t, keys, 6)
}

// What is no clock event, or does not name its clocks, has no key.
func TestKey_OtherRecords_HaveNone(t *testing.T) {
	lr := plog.NewLogRecord()
	assert.Empty(t, Key(lr))
	lr.SetEventName("lockstep.finding")
	assert.Empty(t, Key(lr))
	lr.SetEventName(semconv.EventClockModel)
	assert.Empty(t, Key(lr))
	lr.Attributes().PutInt(semconv.ClockID, 5)
	assert.Empty(t, Key(lr))
	assert.Empty(t, keyOfEdge(func(e *model.ClockEdge) { e.Src = strings.Repeat("x", 257) }))
	assert.Empty(t, keyOfEdge(func(e *model.ClockEdge) { e.Dst = "a\x00b" }))
}
