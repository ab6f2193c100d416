// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The words are laid out by hand as docs/format/ring.md says.
func TestViewsOfWitnesses(t *testing.T) {
	kernel := Record{
		1: 8 | 2<<8 | 0b11101<<16, 2: 100, 3: 200, 4: 50, 5: 300 | 77<<32, 6: 7 | 1<<32 | 2<<48, 7: 9001 | 4<<32,
		8: 70000 | 3<<32 | 2<<48, 9: 256 | 2<<16 | 1<<32 | 64<<48, 10: 4096, 11: 1024 | 5<<32,
	}
	want := Kernel{
		Start: 100, End: 200, Launch: 50, Launched: true, Copy: true, Graph: true, Communication: true,
		Name: 300, TID: 77, Stream: 7, Device: 1, Context: 2, Correlation: 9001, GraphID: 4,
		Grid: [3]uint32{70000, 3, 2}, Block: [3]uint32{256, 2, 1}, Registers: 64, Bytes: 4096, SharedMemory: 1024, GPU: 5,
	}
	assert.Equal(t, want, kernel.Kernel())
	assert.Equal(t, KindKernel, kernel.Kind())
	assert.Equal(t, LevelCollectives, kernel.Level())
	assert.Zero(t, kernel.LastSeen(), "no clock of the host has stamped it")
	assert.Equal(t, uint64(50), kernel.LaunchOrStart())
	kernel[1] = 8 | 0b10<<16
	assert.Equal(t, uint64(100), kernel.LaunchOrStart())
	assert.Equal(t, []any{true, false, uint64(0)}, []any{kernel.Kernel().Set, kernel.Kernel().Launched, kernel.Kernel().Launch})

	clock := Record{1: 9, 2: 10, 3: 20, 4: 30, 5: 40 | 1<<32}
	assert.Equal(t, Clock{Raw: 10, CUPTI: 20, Realtime: 30, Width: 40, Source: SourceCUPTI}, clock.Clock())
	assert.Equal(t, uint64(10), clock.LastSeen())

	link := Record{1: 10, 2: ^uint64(0), 3: 0x0706050403020100, 4: 0x0f0e0d0c0b0a0908, 5: 0x1716151413121110, 6: 99, 7: 77}
	assert.Equal(t, Link{
		Step: -1, Trace: [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		Span: [8]byte{16, 17, 18, 19, 20, 21, 22, 23}, At: 99, TID: 77,
	}, link.Link())
	assert.Equal(t, uint64(99), link.LastSeen())
	assert.Equal(t, []string{"kernel", "clock", "link"}, []string{KindKernel.String(), KindClock.String(), KindLink.String()})
}

func TestWitnesses(t *testing.T) {
	m := newImage(3, 8)
	m.set(atWitnesses, 1|1<<3|1<<40)
	m.set(atCUPTI, 2|39<<32)
	r := m.open(t)
	assert.Equal(t, WitnessNCCL|WitnessCUPTI|1<<40, r.Witnesses())
	assert.Equal(t, "NCCL, CUPTI", r.Witnesses().String())
	state, result := r.CUPTI()
	assert.Equal(t, []any{CUPTIYielded, uint32(39), "yielded"}, []any{state, result, state.String()})
	m.set(atCUPTI, 77)
	state, _ = r.CUPTI()
	assert.Equal(t, "unknown (77)", state.String())
}

func TestOpenScopes(t *testing.T) {
	m := newImage(4, 8)
	lane := func(i int, owner, scope, since uint64) {
		at := m.offset[sLanes] + uint64(i)*laneWords*8
		m.set(at, owner)
		m.set(at+24, scope)
		m.set(at+32, since)
	}
	lane(0, 9, 5, 10) // the shared lane has no scope, whatever it says
	lane(1, 100, 600|2<<32|uint64(PhaseTrain)<<48, 20)
	lane(2, 0, 7, 30) // given back
	lane(3, 101, 0, 40)
	r := m.open(t)
	want := OpenScope{TID: 100, Name: 600, Depth: 2, Phase: PhaseTrain, Since: 20}
	assert.Equal(t, []OpenScope{want}, r.OpenScopes(nil))
	lanes := r.Lanes(nil)
	assert.Equal(t, want, lanes[1].Scope)
	for _, i := range []int{0, 2, 3} {
		assert.Zero(t, lanes[i].Scope, "lane %d", i)
	}
}
