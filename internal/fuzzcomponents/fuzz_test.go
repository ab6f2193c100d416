// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const (
	// patience is how long one input may take: a hundred times what the longest does.
	patience = 30 * time.Second
	// mostAllocated is how many bytes may be allocated for one input. Most need 10 MB.
	mostAllocated = 512 << 20
	// mostActions bounds the actions of an input, and mostWaits those that wait.
	mostActions = 128
	mostWaits   = 4
)

// waits are how long an input waits: for a tick, for a step's deadline, for old state to be forgotten.
var waits = []time.Duration{time.Millisecond, time.Second, 3 * time.Second, 15 * time.Second, 2 * time.Minute, 11 * time.Minute}

// FuzzPipelineData sends a small job's telemetry, changed as the input says, to every
// connector and processor. None may panic, hang, change data that it does not own, lose a span,
// or send data that no consumer can take.
func FuzzPipelineData(f *testing.F) {
	f.Add([]byte{})
	for variant := range byte(len(variants)) {
		f.Add([]byte{variant, actSend, actSend, actWait, 1, actSend, actWait, 3, actSend, actBoth, actWait, 4, actCollect, actWait, 5})
		f.Add([]byte{variant, actRefuse, actSend, actSend, actWait, 3, actSend, actRefuse, actWait, 4, actSend})
		f.Add([]byte{variant, actTogether, actSend, actSend, actSend, actWait, 2})
	}
	for field := range byte(12) {
		f.Add([]byte{field, actEdit, 0, 1, 0, 4, field, field, 0, field, actEdit, 1, field, 0, 0, field, 0, field, field, actSend, actWait, 2})
	}
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Add(append([]byte{0, actRawTraces}, marshalTraces(spans(0, now))...))
	f.Add(append([]byte{0, actRawLogs}, marshalLogs(records(0, now))...))
	f.Fuzz(func(t *testing.T, input []byte) {
		watch := time.AfterFunc(patience, func() { hung(input) })
		defer watch.Stop()
		before := allocated()
		synctest.Test(t, func(t *testing.T) {
			s := &source{input}
			r := newRig(t, pick(s, variants))
			(&program{r: r, s: s}).run()
			r.stop()
		})
		assert.Less(t, allocated()-before, uint64(mostAllocated), "bytes allocated")
	})
}

// hung ends the process: a test that waits for a lock cannot be stopped otherwise.
func hung(input []byte) {
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	debug.SetTraceback("none")
	panic(fmt.Sprintf("input hangs for %v: %q", patience, input))
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// The actions of an input.
const (
	actSend = iota
	actEdit
	actWait
	actBoth
	actTogether
	actRefuse
	actCollect
	actRawTraces
	actRawLogs
	actions
)

// program is an input that runs.
type program struct {
	r        *rig
	s        *source
	b        *batch
	step     int64
	waited   int
	together bool // spans and records are sent at the same time
}

func (p *program) run() {
	p.b = newBatch(0, time.Now())
	for range mostActions {
		if !p.s.more() {
			break
		}
		p.act(p.s.below(actions))
	}
	p.send()
	time.Sleep(time.Second)
	synctest.Wait()
}

func (p *program) act(action int) {
	switch action {
	case actSend:
		p.send()
	case actEdit:
		p.b.edit(p.s, time.Now())
	case actWait:
		if p.waited++; p.waited <= mostWaits {
			time.Sleep(pick(p.s, waits))
		}
	case actBoth: // once more, as a client does that got no answer
		p.r.sendTraces(p.b.td)
		p.r.sendLogs(p.b.ld)
	case actTogether:
		p.together = !p.together
	case actRefuse:
		p.r.out.refuse(p.s.byte()&1 == 0)
	case actCollect:
		var rm metricdata.ResourceMetrics
		require.NoError(p.r.t, p.r.telemetry.Reader.Collect(p.r.t.Context(), &rm))
	case actRawTraces:
		if td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(bytes.Clone(p.s.b)); err == nil {
			p.s.b, p.b.td = nil, td
		}
	case actRawLogs:
		if ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(bytes.Clone(p.s.b)); err == nil {
			p.s.b, p.b.ld = nil, ld
		}
	}
}

// send sends the batch and begins that of the next step.
func (p *program) send() {
	td, ld := p.b.td, p.b.ld
	if p.together {
		var wg sync.WaitGroup
		wg.Go(func() { p.r.sendTraces(td) })
		p.r.sendLogs(ld)
		wg.Wait()
	} else {
		p.r.sendTraces(td)
		p.r.sendLogs(ld)
	}
	p.step++
	time.Sleep(100 * time.Millisecond)
	p.b = newBatch(p.step, time.Now())
}
