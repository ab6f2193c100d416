// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Details of the lines of `lockstep rings --records`, one per kind of record. What
// is not known, and the step outside of any, is left out.
type (
	stepDetail struct {
		Step   int64  `json:"step"`
		Thread uint32 `json:"thread"`
	}
	scopeDetail struct {
		Step   *uint32 `json:"step,omitempty"`
		Thread uint32  `json:"thread"`
		Depth  uint16  `json:"depth"`
		Phase  string  `json:"phase"`
		NVTX   bool    `json:"nvtx,omitempty"`
		Async  bool    `json:"async,omitempty"` // it nests in nothing
	}
	proxyStepDetail struct {
		Seq        uint64    `json:"seq"`
		Op         uint64    `json:"op"` // handle, as in the operation's record
		Number     uint32    `json:"number"`
		Steps      uint16    `json:"steps"`
		Step       *uint32   `json:"step,omitempty"`
		Peer       int32     `json:"peer"`
		Channel    uint8     `json:"channel"`
		Send       bool      `json:"send"`
		ChunkBytes uint32    `json:"chunk_bytes"`
		Bytes      uint64    `json:"bytes"`
		WaitsNS    [3]uint64 `json:"waits_begin_ns"` // 0: not entered
	}
	kernelChannelDetail struct {
		Seq        uint64  `json:"seq"`
		Op         uint64  `json:"op"`
		Step       *uint32 `json:"step,omitempty"`
		Channel    uint32  `json:"channel"`
		StartClock uint64  `json:"start_gpu_clock"`
		StopClock  uint64  `json:"stop_gpu_clock"`
	}
	apiDetail struct {
		Step          *uint32 `json:"step,omitempty"`
		Thread        uint32  `json:"thread"`
		GraphCaptured bool    `json:"graph_captured,omitempty"`
		Count         uint64  `json:"count"`
		Stream        uint64  `json:"stream"`
	}
	netDetail struct {
		Op      uint64 `json:"op"`
		Type    uint64 `json:"type"`
		Version uint16 `json:"version"`
		Queue   uint32 `json:"queue"`
		Opcode  uint32 `json:"opcode"`
		Bytes   uint64 `json:"bytes"`
	}
	// kernelDetail has the times of CUPTI's clock beside those of the line, which are 0
	// where no reading of it is near.
	kernelDetail struct {
		StartClock    uint64    `json:"start_cupti_clock"`
		EndClock      uint64    `json:"end_cupti_clock"`
		LaunchClock   uint64    `json:"launch_cupti_clock,omitempty"`
		Launch        uint64    `json:"launch_ns,omitempty"`
		Bound         uint64    `json:"bound_ns,omitempty"` // half width of where its times are
		Copy          bool      `json:"copy,omitempty"`
		Set           bool      `json:"set,omitempty"`
		Graph         bool      `json:"graph,omitempty"`
		Communication bool      `json:"communication,omitempty"`
		Thread        uint32    `json:"thread"`
		GPU           uint32    `json:"gpu"`
		Device        uint16    `json:"device"`
		Context       uint16    `json:"context"`
		Stream        uint32    `json:"stream"`
		Correlation   uint32    `json:"correlation"`
		GraphID       uint32    `json:"graph_id,omitempty"`
		Grid          [3]uint32 `json:"grid"`
		Block         [3]uint32 `json:"block"`
		Registers     uint16    `json:"registers"`
		SharedBytes   uint32    `json:"shared_bytes"`
		Bytes         uint64    `json:"bytes,omitempty"`
	}
	clockDetail struct {
		CUPTI    uint64 `json:"cupti_clock"`
		Realtime uint64 `json:"realtime_ns"`
		Width    uint32 `json:"width_ns"`
		Source   uint32 `json:"source"`
	}
	linkDetail struct {
		Step   *int64 `json:"step,omitempty"`
		Trace  string `json:"trace"`
		Span   string `json:"span"`
		Thread uint32 `json:"thread"`
	}
)

func inStep(step uint32, in bool) *uint32 {
	if !in {
		return nil
	}
	return &step
}

func detailOfScope(s *ring.Scope) scopeDetail {
	return scopeDetail{Step: inStep(s.Step, s.InStep), Thread: s.TID, Depth: s.Depth, Phase: s.Phase.String(), NVTX: s.NVTX, Async: s.Async}
}

func detailOfProxyStep(s *ring.ProxyStep) proxyStepDetail {
	return proxyStepDetail{
		Seq: s.Seq, Op: s.Op, Number: s.Number, Steps: s.Steps, Step: inStep(s.TrainStep, s.InStep),
		Peer: s.Peer, Channel: s.Channel, Send: s.Send, ChunkBytes: s.Chunk, Bytes: s.Size, WaitsNS: s.Waits,
	}
}

func detailOfKernelChannel(s *ring.KernelChannel) kernelChannelDetail {
	return kernelChannelDetail{
		Seq: s.Seq, Op: s.Op, Step: inStep(s.Step, s.InStep), Channel: s.Channel, StartClock: s.Start, StopClock: s.Stop,
	}
}

func detailOfAPI(s *ring.API) apiDetail {
	return apiDetail{Step: inStep(s.Step, s.InStep), Thread: s.TID, GraphCaptured: s.GraphCaptured, Count: s.Count, Stream: s.Stream}
}

func detailOfNet(s *ring.Net) netDetail {
	return netDetail{Op: s.Op, Type: s.Type, Version: s.Version, Queue: s.Queue, Opcode: s.Opcode, Bytes: s.Length}
}

// detailOfKernel gives a kernel with its times on the host's clock.
func detailOfKernel(k *ring.Kernel, clock *gpuclock.Pairs) (start, end uint64, d kernelDetail) {
	d = kernelDetail{
		StartClock: k.Start, EndClock: k.End, LaunchClock: k.Launch, Copy: k.Copy, Set: k.Set, Graph: k.Graph, Communication: k.Communication,
		Thread: k.TID, GPU: k.GPU, Device: k.Device, Context: k.Context, Stream: k.Stream, Correlation: k.Correlation, GraphID: k.GraphID,
		Grid: k.Grid, Block: k.Block, Registers: k.Registers, SharedBytes: k.SharedMemory, Bytes: k.Bytes,
	}
	start, bound, ok := clock.Host(k.Start)
	if !ok {
		return 0, 0, d
	}
	if end, _, ok = clock.Host(k.End); !ok {
		return 0, 0, d
	}
	d.Bound = bound
	if k.Launched {
		d.Launch, _, _ = clock.Host(k.Launch)
	}
	return start, max(start, end), d
}

func detailOfClock(c *ring.Clock) clockDetail {
	return clockDetail{CUPTI: c.CUPTI, Realtime: c.Realtime, Width: c.Width, Source: c.Source}
}

func detailOfLink(l *ring.Link) linkDetail {
	d := linkDetail{Trace: hex.EncodeToString(l.Trace[:]), Span: hex.EncodeToString(l.Span[:]), Thread: l.TID}
	if l.Step >= 0 {
		d.Step = &l.Step
	}
	return d
}
