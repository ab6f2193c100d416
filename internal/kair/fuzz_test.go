// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// FuzzAnalyzer takes whatever operations: 16 bytes each, of few ranks, steps, keys,
// streams and rendezvous, so that they collide, and of any times.
func FuzzAnalyzer(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdeg0123456789abcdeh0123456789abcdei"))
	f.Add(make([]byte, 512))
	kinds := []model.OpKind{
		model.KindCompute, model.KindCopy, model.KindCollective, model.KindSend, model.KindRecv, model.KindScope, model.KindHost, model.KindStep,
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, cfg := range methods() {
			cfg.Windows, cfg.Span, cfg.MaxShown, cfg.MaxRanks, cfg.MinSteps, cfg.MaxOpenSteps = 7, 2, 3, 6, 1, 2
			a := New(cfg)
			for data := data; len(data) >= 16; data = data[16:] {
				at := int64(binary.LittleEndian.Uint64(data)) >> (data[8] % 64)
				length := int64(int8(data[9])) << (data[10] % 64)
				a.Add(model.Rank{Rank: int64(data[11] % 8)}, []model.Op{{
					Kind: kinds[data[12]%8], Name: string('a' + rune(data[12]%5)), Seq: int64(data[13] % 3), Step: model.Some(int64(data[13] % 5)),
					Start: at, End: at + length, Launch: model.Some(at - length), Stream: model.Some(int64(data[14] % 3)),
					Comm: model.Comm{ID: "c"}, Peer: model.Some(int64(data[15] % 8)),
					Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(int64(data[15] % 4)), SeqScope: model.ScopeComm},
				}})
			}
			for n := range int64(5) {
				a.Close(n)
			}
			for _, s := range a.Scores() {
				if !(s.Score >= 0) || (!cfg.Raw && s.Score > 1) {
					t.Fatalf("rank %d: got score %v", s.Rank, s.Score)
				}
			}
			for _, c := range a.Accusations() {
				if math.IsNaN(c.Score) || c.Share > 1 {
					t.Fatalf("got %+v", c)
				}
			}
			a.Heatmap(2)
			if ops := a.Frequency().Ops; len(ops) > cfg.MaxShown+1 {
				t.Fatalf("got %d operations; want at most %d", len(ops), cfg.MaxShown+1)
			}
		}
	})
}
