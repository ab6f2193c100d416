package main

import "github.com/lockstep-otel/lockstep/internal/ring"

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
)

func inStep(step uint32, in bool) *uint32 {
	if !in {
		return nil
	}
	return &step
}

func detailOfScope(s *ring.Scope) scopeDetail {
	return scopeDetail{Step: inStep(s.Step, s.InStep), Thread: s.TID, Depth: s.Depth, Phase: s.Phase.String()}
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
