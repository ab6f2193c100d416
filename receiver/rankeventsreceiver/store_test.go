// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zapcore"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// threeSteps writes two whole steps and an open one: eight records.
func threeSteps(f *ringFile, from int64) {
	for n := from; n < from+3; n++ {
		f.mark(n)
		f.op(1, 1, n, uint64(n))
		if n < from+2 {
			f.op(2, 2, n, uint64(n))
		}
	}
}

func (l *life) steps(t *testing.T) []int64 {
	t.Helper()
	d := newDelivered()
	d.take(t, l)
	return slices.Sorted(maps.Keys(d.steps))
}

func TestRestart_OrderlyEnd_NothingIsHandedOnTwice(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	for n := range int64(2) {
		f.mark(n)
		f.op(1, 1, n, uint64(n))
		f.op(2, 2, n, uint64(n))
	}
	l := begin(t, withStorage(dir), d)
	l.poll()
	f.mark(2)
	f.op(1, 1, 2, 2)
	l.poll()
	l.stop()
	all := newDelivered()
	all.take(t, l)
	l = begin(t, withStorage(dir), d)
	f.op(2, 2, 2, 2)
	f.mark(3)
	l.poll()
	l.save()
	l.poll()
	assert.Equal(t, int64(2), l.counter(t, "records_reread"), "the open step: its mark and its operation")
	all.take(t, l)
	for n, ids := range all.steps {
		for _, times := range ids {
			assert.Equal(t, 1, times, "step %d", n)
		}
	}
	assert.Equal(t, map[int64]int64{0: 2, 1: 2, 2: 2}, all.sums)
	for n, ids := range all.ops {
		for _, times := range ids {
			assert.LessOrEqual(t, times, 2, "operations of step %d, on two communicators", n)
		}
	}
}

func TestRestart_PositionOfNoUse_IsCountedAndReadAnew(t *testing.T) {
	for name, spoil := range map[string]func(*disk){
		"no JSON": func(d *disk) { d.data["ring/7-7-0000000a.ring"] = []byte("{") },
		"beyond the head": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Lanes[0][2] = 1000 })
		},
		"of no lane": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Lanes[0][0] = 9 })
		},
		"too large": func(d *disk) {
			const key = "ring/7-7-0000000a.ring"
			d.data[key] = append(d.data[key], bytes.Repeat([]byte{' '}, maxPositionBytes)...)
		},
		"of a negative count": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Count.Read = -1 })
		},
		"of a count that no ring reaches": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Count.Lost = math.MaxInt64 })
		},
		"of negative loss in a step": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Rank.Open[0].Lost = -1 })
		},
		"of a negative step": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Rank.Begins[0].N = -1 })
		},
		"of a negative gap": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Rank.Gap = -1 })
		},
		"of negative kernels": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Rank.Kernels.Folded = -1 })
		},
		"of too many groups": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) { p.Rank.Groups = make([]rankevents.OpenGroup, 33) })
		},
		"of too long a text": func(d *disk) {
			spoilPosition(t, d, func(p *rankevents.Position) {
				p.Rank.Loaded = &rankevents.KeptResume{Resume: model.Resume{Number: 1, DataCursor: strings.Repeat("x", 4096)}}
			})
		},
		"list too large": func(d *disk) { d.data["rings"] = append(d.data["rings"], bytes.Repeat([]byte{' '}, maxListBytes)...) },
		"no list":        func(d *disk) { d.data["rings"] = []byte("[]") },
		"no value":       func(d *disk) { delete(d.data, "ring/7-7-0000000a.ring") },
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), &disk{}
			f := newRingFile(t, dir, 3, 64, 5)
			threeSteps(f, 0)
			l := begin(t, withStorage(dir), d)
			l.poll()
			l.kill()
			spoil(d)
			l = begin(t, withStorage(dir), d)
			l.poll()
			assert.Equal(t, []int64{0, 1}, l.steps(t))
			assert.Equal(t, int64(1), l.counter(t, "storage_errors"))
			assert.Equal(t, 1, l.said("of no use"))
			l.save()
			l.poll()
			l.kill()
			l = begin(t, withStorage(dir), d)
			l.poll()
			assert.Empty(t, l.steps(t), "kept again")
			assert.Zero(t, l.counter(t, "storage_errors"))
		})
	}
}

// Files that stay in the directory do not make the list of rings longer than load reads.
func TestStore_FilesThatAreNoRingsAnyMore_AreBounded(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, withStorage(dir), &disk{})
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l.poll()
	junk := filepath.Join(t.TempDir(), "junk")
	require.NoError(t, os.WriteFile(junk, nil, 0o600))
	for i := range maxMaxRings + 10 {
		name := fmt.Sprintf("%05d.ring", i)
		require.NoError(t, os.Link(junk, filepath.Join(dir, name)))
		l.rd.store.known[name] = true
	}
	l.rd.forgetGone()
	assert.Len(t, l.rd.store.known, maxMaxRings+1, "and the ring that is read")
	assert.Len(t, l.rd.store.gone, 10)
	assert.Contains(t, l.rd.store.known, "00000.ring", "the first are those that are looked at")
	assert.Zero(t, l.said("Ring was removed"))
}

func spoilPosition(t *testing.T, d *disk, change func(*rankevents.Position)) {
	t.Helper()
	const key = "ring/7-7-0000000a.ring"
	p, err := decodePosition(d.data[key])
	require.NoError(t, err)
	change(p)
	d.data[key], err = json.Marshal(p)
	require.NoError(t, err)
}

func TestRestart_AnotherProcessUnderTheName_IsReadAnew(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	l.kill()
	threeSteps(newRingFile(t, dir, 3, 64, 6), 0)
	l = begin(t, withStorage(dir), d)
	l.poll()
	assert.Equal(t, []int64{0, 1}, l.steps(t))
	assert.Equal(t, int64(1), l.counter(t, "rings_ended", goneReason))
	assert.Zero(t, l.counter(t, "storage_errors"))
}

func TestRestart_RingThatIsGone_IsCountedAndForgotten(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	l.kill()
	require.NoError(t, os.Remove(f.path))
	l = begin(t, withStorage(dir), d)
	l.poll()
	assert.Equal(t, int64(1), l.counter(t, "rings_ended", goneReason))
	assert.Equal(t, 1, l.said("Ring was removed while it was not read"))
	assert.Equal(t, map[string][]byte{"rings": []byte("{}")}, d.data)
}

func TestRestart_RingReadToItsEnd_IsNotReadAgain(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	f.set(96, 2) // closed
	l.poll()
	l.poll()
	assert.Equal(t, int64(1), l.counter(t, "rings_ended", "closed"))
	assert.Equal(t, []int64{0, 1, 2}, l.steps(t))
	assert.Equal(t, int64(8), l.counter(t, "records_read"))
	l.kill()
	l = begin(t, withStorage(dir), d)
	l.poll()
	assert.Empty(t, l.spans.AllTraces())
	assert.Zero(t, l.counter(t, "records_read")+l.counter(t, "records_reread")+l.counter(t, "rings_ended"))
	require.NoError(t, os.Remove(f.path))
	l.poll() // lets go of it
	l.save()
	l.poll()
	assert.Zero(t, l.counter(t, "rings_ended"), "it had ended before")
	assert.Equal(t, map[string][]byte{"rings": []byte("{}")}, d.data)
}

// A ring whose process ends together with the collector is read to its end, and its end is counted.
func TestRestart_ProcessEndsWithTheCollector_IsCountedOnce(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	f.set(96, 2) // closed
	l.stop()
	assert.EqualValues(t, 1, l.counter(t, "rings_ended"))
	l = begin(t, withStorage(dir), d)
	l.poll()
	l.poll()
	assert.Zero(t, l.counter(t, "rings_ended"))
	l.stop()
}

func TestRestart_ProcessEndedMeanwhile_IsReadToItsEnd(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	l.kill()
	threeSteps(f, 3)
	f.set(96, 2) // closed
	l = begin(t, withStorage(dir), d)
	l.poll() // it is over at the second look
	l.poll()
	assert.Equal(t, []int64{2, 3, 4, 5}, l.steps(t))
	assert.Equal(t, []int64{8, 8}, []int64{l.counter(t, "records_read"), l.counter(t, "records_reread")})
	assert.Equal(t, int64(1), l.counter(t, "rings_ended", "closed"))
}

// If data is refused while the collector ends, the next collector emits it.
func TestRestart_RefusedAtTheEnd_IsHandedOnByTheNext(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 64, 5)
	f.mark(0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	refuse, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return errors.New("the queue is full") })
	require.NoError(t, err)
	threeSteps(f, 1)
	l.rd.tracesTo(refuse)
	l.stop()
	assert.Zero(t, l.counter(t, "operations_dropped"))
	l = begin(t, withStorage(dir), d)
	l.poll()
	l.save()
	l.poll()
	assert.Equal(t, []int64{0, 1, 2}, l.steps(t))
	assert.Equal(t, int64(8), l.counter(t, "records_read"), "the mark of step 0 was counted")
}

func TestStorage_Fails_IsCountedAndReadingGoesOn(t *testing.T) {
	dir, d := t.TempDir(), &disk{fail: true}
	f := newRingFile(t, dir, 3, 64, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	h := &statusHost{}
	l.rd.health.Start(h)
	l.poll()
	l.save()
	l.poll()
	assert.Equal(t, []int64{0, 1}, l.steps(t))
	assert.Equal(t, int64(8), l.counter(t, "records_read"))
	assert.Equal(t, int64(3), l.counter(t, "storage_errors"), "once to read, twice to write")
	assert.Equal(t, 1, l.said("cannot be kept"))
	require.NotNil(t, h.event)
	require.ErrorContains(t, h.event.Err(), "write positions: ")
	d.mu.Lock()
	d.fail = false
	d.mu.Unlock()
	l.save()
	l.poll()
	assert.Contains(t, d.data, "ring/7-7-0000000a.ring")
	assert.NoError(t, h.event.Err())
}

func TestStorage_IsNotThere_StartFails(t *testing.T) {
	b := &bench{spans: &consumertest.TracesSink{}, events: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry()}
	t.Cleanup(func() { assert.NoError(t, b.tel.Shutdown(context.Background())) })
	r := newFaces(t, withStorage(t.TempDir()), b, zapcore.NewNopCore())
	require.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), `find storage: got no extension "file_storage"`)
	require.NoError(t, r.Shutdown(t.Context()))
}

// The records of the rings that are open, over all lives, are those that their writers wrote.
func TestRingRecords_OverTwoLives_EqualTheHeads(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	f := newRingFile(t, dir, 3, 16, 5)
	threeSteps(f, 0)
	l := begin(t, withStorage(dir), d)
	l.poll()
	l.kill()
	for n := range int64(20) {
		threeSteps(f, 3*(n+1))
	}
	l = begin(t, withStorage(dir), d)
	l.poll()
	l.poll()
	by := l.gauge(t, "ring_records")
	assert.Equal(t, int64(f.written()), by["read"]+by["lost"]+by["skipped"]+by["before_attach"])
	assert.Positive(t, by["lost"])
	assert.Zero(t, by["before_attach"])
	l.save()
	l.poll()
	assert.Positive(t, l.counter(t, "steps_missing"))
}

func FuzzPosition(f *testing.F) {
	p := rankevents.Position{Process: rankevents.Process{PID: 7, Start: 7, Created: 5}, Lanes: []rankevents.Stop{{1, 0, 2}}}
	p.Rank = &rankevents.Settled{World: 1, Closed: 0, Open: []rankevents.OpenStep{{N: 1, Begin: 5}}, Begins: []rankevents.StepBegin{{N: 1, At: 5}}}
	raw, err := json.Marshal(&p)
	require.NoError(f, err)
	f.Add(raw)
	f.Add([]byte(`{"pid":7,"start":7,"created":5,"boot":"00000000-0000-0000-0000-000000000000"}`))
	dir := f.TempDir()
	file := newRingFile(f, dir, 3, 64, 5)
	threeSteps(file, 0)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := decodePosition(raw)
		if err != nil {
			return
		}
		r, err := ring.Open(file.path, ring.Options{})
		require.NoError(t, err)
		defer r.Close()
		h := r.Header()
		p.Process = rankevents.ProcessOf(&h)
		rank := rankevents.NewNode(withStorage(dir).engine()).Attach(r, "job")
		if rank.Resume(p) != nil {
			return
		}
		rank.Pass(ring.Now(), func(*rankevents.Batch) {})
		rank.Pass(ring.Now(), func(*rankevents.Batch) {})
		kept, ok := rank.Position()
		require.True(t, ok)
		_, err = json.Marshal(&kept)
		require.NoError(t, err)
	})
}
