// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// choices takes every choice from data, zeros where it has ended.
type choices struct{ data []byte }

func (c *choices) next(below int64) int64 {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int64(b) % below
}

// any is a number near where it could be, or any.
func (c *choices) any(near int64) int64 {
	switch c.next(16) {
	case 0:
		return math.MinInt64 + c.next(8)
	case 1:
		return math.MaxInt64 - c.next(8)
	case 2:
		var b [8]byte
		c.data = c.data[copy(b[:], c.data):]
		return int64(binary.LittleEndian.Uint64(b[:]))
	case 3:
		return -c.next(8)
	}
	return near
}

func (c *choices) maybe(near int64) model.Optional[int64] {
	if c.next(8) == 0 {
		return model.Optional[int64]{}
	}
	return model.Some(c.any(near))
}

// ops are some operations of a rank's step, one after the other unless they are out of range.
func (c *choices) ops(step int64) (ops []model.Op) {
	names := []string{model.AllReduce, model.AllGather, model.Broadcast, model.AllToAll, model.Barrier, "", model.SendRecv}
	kinds := []model.OpKind{model.KindCollective, model.KindCompute, model.KindSend, model.KindRecv, model.KindScope, model.KindHost, model.KindCopy, model.KindStep, "unheard of"}
	scopes := []model.SeqScope{model.ScopeComm, model.ScopeOrdinal, model.ScopeCommFunc, model.ScopeProcess, ""}
	begin := nanos(0) + step*1_000_000
	at := begin
	for i := range c.next(8) {
		op := model.Op{
			Kind: kinds[c.next(int64(len(kinds)))], Name: "k", Start: c.any(at), Launch: c.maybe(at - 5000), Seq: c.any(i), Stream: c.maybe(c.next(2)),
			Step: model.Some(step), Peer: c.maybe(c.next(4)), EndInferred: c.next(16) == 0, Microbatch: c.maybe(i),
			Comm:       model.Comm{ID: string(rune('a' + c.next(3))), Size: c.maybe(4)},
			Collective: model.Collective{Name: names[c.next(int64(len(names)))], Seq: c.maybe(i), SeqScope: scopes[c.next(int64(len(scopes)))], Bytes: c.maybe(1024), Root: c.maybe(0)},
		}
		at += 10_000 * (1 + c.next(8))
		op.End = c.any(at)
		ops = append(ops, op)
	}
	if c.next(8) > 0 {
		ops = append(ops, model.Op{Kind: model.KindStep, Name: "step", Start: begin, End: max(at, begin+1), Step: model.Some(step), StepOps: c.maybe(int64(len(ops)))})
	}
	return ops
}

// FuzzEngine adds any operations: nothing panics, nothing is held beyond its limits or after it
// was closed, all that is said is finite, and it is said again of the same.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{}, uint8(1))
	f.Add([]byte("0123456789abcdef0123456789abcdef0123456789abcdef"), uint8(24))
	for seed := range byte(8) {
		data := make([]byte, 1500)
		for i := range data {
			data[i] = byte(i*i*7+i) * (seed + 3)
		}
		f.Add(data, 5+seed)
	}
	f.Fuzz(func(t *testing.T, data []byte, adds uint8) {
		// As much as a step of some ranks needs, so that 300 are done in a second.
		data = data[:min(len(data), 2048)]
		first, again := fuzzed(t, data, int(adds%48)), fuzzed(t, data, int(adds%48))
		require.Equal(t, first, again)
	})
}

func fuzzed(t *testing.T, data []byte, adds int) string {
	t.Helper()
	cfg := NewDefaultConfig()
	cfg.MaxRanks, cfg.MaxOpenSteps, cfg.Window = 6, 3, 4
	e := New(cfg, func() time.Time { return time.Unix(0, 0) })
	c := &choices{data}
	said := ""
	say := func(v any) {
		text, err := json.Marshal(v) // which refuses what is not finite
		require.NoError(t, err)
		said += string(text) + "\n"
	}
	steps := func(reports []*StepReport) {
		for _, r := range reports {
			say([]any{r.Step, r.Ranks, r.Unmatched, r.Path})
		}
	}
	for i := range adds {
		rank := model.Rank{JobID: "j", Rank: c.any(int64(i % 4)), WorldSize: c.maybe(4), HostName: string(rune('g' + c.next(2)))}
		step := int64(i / 4)
		if c.next(8) == 0 {
			step = c.any(step)
		}
		steps(e.Add(rank, c.ops(step)))
	}
	steps(e.Flush())
	say(e.Jobs())
	say(e.Stats())
	for _, j := range e.sorted() {
		assert.Empty(t, j.open)
		assert.Zero(t, j.held)
		assert.LessOrEqual(t, len(j.ranks), cfg.MaxRanks)
		assert.LessOrEqual(t, len(j.window), cfg.Window)
	}
	return said
}
