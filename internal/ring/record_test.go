// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The words are laid out by hand as inject/ring.h says.
func TestOperation(t *testing.T) {
	minus := func(v int32) uint64 { return uint64(uint32(v)) }
	r := Record{
		42 + 1,
		1 | 2<<8 | uint64(FlagKernel|FlagProxy|FlagWaits|FlagGroup)<<16 | 300<<32 | 7<<48 | 9<<56,
		0xfeed | 9<<48, 17, 1 << 40,
		minus(-3) | 24<<32 | 36<<40 | 45<<48 | 23<<56,
		1_000_000, 250 | 12<<32, 5000, 6000, 800 | 6<<32, 2_000_000,
		10 | 30<<32, 77 | 3<<32 | 24<<48 | 5<<56, 1 | 2<<32, 3 | 4<<32,
	}
	assert.Equal(t, uint64(42), r.Number())
	assert.Equal(t, KindOp, r.Kind())
	assert.Equal(t, LevelCollectives, r.Level())
	assert.True(t, r.Has(FlagKernel|FlagGroup))
	assert.False(t, r.Has(FlagKernel|FlagInferred))
	assert.Equal(t, []uint16{300, 3}, []uint16{r.Comm(), r.Stream()})
	assert.Equal(t, []uint8{7, 9, 24, 36, 45, 23, 24, 5}, []uint8{
		r.Func(), r.DType(), r.Channels(), r.Algo(), r.Proto(), r.SlowestChannel(), r.KernelChannels(), r.ProxyOps(),
	})
	assert.Equal(t, []uint64{0xfeed, 17, 1 << 40, 1_000_000, 5000, 6000, 2_000_000}, []uint64{
		r.Handle(), r.Seq(), r.Bytes(), r.EnqueueBegin(), r.KernelStart(), r.KernelStop(), r.CompletedAt(),
	})
	assert.Equal(t, []int32{-3, -3, 6}, []int32{r.Peer(), r.Root(), r.WirePeer()})
	assert.Equal(t, []uint32{250, 800, 77}, []uint32{r.EnqueueTook(), r.SlowestTook(), r.Group()})
	step, ok := r.Step()
	assert.Equal(t, []any{uint32(12), true}, []any{step, ok})
	assert.Equal(t, uint16(9), r.SendSteps())
	start, ok := r.ProxyStart()
	assert.Equal(t, []any{uint64(1_001_000), true}, []any{start, ok})
	stop, _ := r.ProxyStop()
	assert.Equal(t, uint64(1_003_000), stop)
	gpu, peer, wire, flush := r.Waits()
	assert.Equal(t, []uint64{100, 200, 300, 400}, []uint64{gpu, peer, wire, flush})
	r[7] |= noStep << 32
	_, ok = r.Step()
	assert.False(t, ok)
}

func TestSaturatedDurationsDoNotOverflow(t *testing.T) {
	r := Record{14: ^uint64(0)}
	gpu, peer, _, _ := r.Waits()
	assert.Equal(t, uint64(429_496_729_500), gpu, "7 minutes")
	assert.Equal(t, gpu, peer)
}

func TestViews(t *testing.T) {
	step := Record{2: ^uint64(0), 3: 50, 4: 60}
	assert.Equal(t, Step{Step: -1, Begin: 50, TID: 60}, step.StepMark())

	scope := Record{2: 10, 3: 20, 4: 5 | 99<<32, 5: 70000%65536 | 2<<32 | uint64(PhaseCompile)<<48}
	assert.Equal(t, Scope{Begin: 10, End: 20, Step: 5, InStep: true, TID: 99, Name: 4464, Depth: 2, Phase: PhaseCompile}, scope.Scope())
	assert.Equal(t, "compile", scope.Scope().Phase.String())
	scope[1] = uint64(KindScope) | 3<<16
	assert.Equal(t, []bool{true, true}, []bool{scope.Scope().NVTX, scope.Scope().Async})

	proxy := Record{
		2: 1, 3: 4 | 512<<32, 4: 0xffffffff | 11<<32 | 1<<40 | 64<<48, 5: 100, 6: 101, 7: 102, 8: 103, 9: 104,
		10: 2048, 11: 33, 12: noStep,
	}
	assert.Equal(t, ProxyStep{
		Op: 1, Number: 4, Chunk: 512, Peer: -1, Channel: 11, Send: true, Steps: 64,
		Begin: 100, Waits: [3]uint64{101, 102, 103}, Stop: 104, Size: 2048, Seq: 33,
	}, proxy.ProxyStep())

	kernel := Record{2: 1, 3: 10, 4: 20, 5: 30, 6: 40, 7: 3 | 8<<32, 8: 77}
	assert.Equal(t, KernelChannel{Op: 1, Start: 10, Stop: 20, StartSeen: 30, StopSeen: 40, Channel: 3, Step: 8, InStep: true, Seq: 77},
		kernel.KernelChannel())

	api := Record{2: 10, 3: 20, 4: 5 | 99<<32, 5: 3 | 1<<32, 6: 1000, 7: 0xdead}
	assert.Equal(t, API{Begin: 10, End: 20, Step: 5, InStep: true, TID: 99, Name: 3, GraphCaptured: true, Count: 1000, Stream: 0xdead}, api.API())

	net := Record{2: 10, 3: 20, 4: 1<<16 | 2, 5: 7 | 8<<32, 6: 4096, 7: 1}
	assert.Equal(t, Net{Begin: 10, End: 20, Type: 1, Version: 2, Queue: 7, Opcode: 8, Length: 4096, Op: 1}, net.Net())
}

func TestNames(t *testing.T) {
	assert.Equal(t, "kernel_channel", KindKernelChannel.String())
	assert.Equal(t, "unknown (200)", Kind(200).String())
	assert.Equal(t, "collectives", LevelCollectives.String())
	assert.Equal(t, "started", SlotStarted.String())
	assert.Equal(t, "receiving: waits for the peer or the wire", ProxyRecv.String())
	for _, s := range []ProxyState{1, 13, 21, 255} {
		assert.Contains(t, s.String(), "unknown", "state %d", uint8(s))
	}
}
