// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// FuzzLog: no content crashes, what is told of is within its limits, and where the
// content is broken into chunks does not matter.
func FuzzLog(f *testing.F) {
	for _, version := range Versions {
		f.Add([]byte(line(version, headerA, stats)+"\n{"+reduce("1")+"}\n{"+p2p+"}\n"+line(version, headerB, reduce("4"))+"\n"), uint8(7))
	}
	const s = "17900000000000"
	f.Add([]byte(line("v4.0", headerA, verbose(s+"10", s+"25,"+s+"20,0", s+"70,"+s+"90,0"))+"\n"), uint8(100))
	f.Add([]byte("ab\x00\x00cd\n"+line("v4.4", headerA, stats)+"\n\x00{"+reduce("1")+"}\ngarbage"), uint8(3))
	f.Fuzz(func(t *testing.T, content []byte, cut uint8) {
		whole, odd := log(content, len(content)+1)
		parts, oddParts := log(content, int(cut)+1)
		require.Equal(t, whole, parts)
		require.Equal(t, odd, oddParts)
		out := &told{}
		cfg := testConfig()
		cfg.Anchor, cfg.MaxHeld = Anchor{Function: model.AllReduce, Every: 2}, 3
		p := NewProcess(cfg, State{}, out)
		timed := 0
		for i := range whole {
			r := &whole[i]
			assert.True(t, r.Comm.Rank >= 0 && r.Comm.Rank < r.Comm.Ranks)
			assert.True(t, r.Seconds >= 0 && r.Seconds <= maxMicros && !math.IsNaN(r.BusRate.V))
			assert.True(t, r.Seq >= 0 && r.Bytes >= 0 && r.Launch <= r.Start && r.Start <= r.End)
			if r.Timed() {
				timed++
			}
			p.Add(r)
		}
		p.End()
		ops := 0
		for _, op := range out.ops {
			if op.Kind != model.KindStep {
				ops++
			}
		}
		lost := out.odd[OddAmbiguous] + out.odd[OddRanks]
		assert.LessOrEqual(t, ops, timed)
		assert.GreaterOrEqual(t, int64(ops)+lost, int64(timed), "no operation with a time is lost in silence")
	})
}

func log(content []byte, chunk int) (recs []Record, reasons []Reason) {
	var p Parser
	s := NewSplitter(4096, SplitState{})
	for len(content) > 0 {
		n := min(chunk, len(content))
		s.Feed(bytes.Clone(content[:n]), func(l Line) {
			r, faults := p.Parse(&l)
			if r != nil {
				recs = append(recs, *r)
			}
			for _, f := range faults {
				reasons = append(reasons, f.Reason)
			}
		})
		content = content[n:]
	}
	return recs, reasons
}
