// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringRecord is one line of `lockstep rings --records`. Times whose keys end in
// _ns are nanoseconds of CLOCK_MONOTONIC_RAW; those in _gpu_clock are of the GPU's
// clock: nanoseconds for CUDA, ticks for ROCm; those in _cupti_clock of CUPTI's.
type ringRecord struct {
	Ring   string `json:"ring"`
	Rank   int32  `json:"rank"`
	Lane   int    `json:"lane"`
	Number uint64 `json:"number"`
	Kind   string `json:"kind"`
	Level  string `json:"level"`
	Begin  uint64 `json:"begin_ns"`
	End    uint64 `json:"end_ns"`
	Name   string `json:"name,omitempty"`
	Detail any    `json:"detail"`
}

// opDetail is the detail of an operation.
type opDetail struct {
	Comm        string      `json:"comm"`
	Seq         uint64      `json:"seq"`
	Op          uint64      `json:"op"` // handle, as in the records of its parts
	Bytes       uint64      `json:"bytes"`
	DType       string      `json:"dtype,omitempty"`
	Algo        string      `json:"algo,omitempty"`
	Proto       string      `json:"proto,omitempty"`
	RootOrPeer  int32       `json:"root_or_peer"`
	Step        *uint32     `json:"step,omitempty"`
	KernelStart uint64      `json:"kernel_start_gpu_clock,omitempty"`
	KernelStop  uint64      `json:"kernel_stop_gpu_clock,omitempty"`
	Waits       *waitDetail `json:"waits,omitempty"`
	Inferred    bool        `json:"inferred,omitempty"`
}

type waitDetail struct {
	GPU   uint64 `json:"gpu_ns"`
	Peer  uint64 `json:"peer_ns"`
	Wire  uint64 `json:"wire_ns"`
	Flush uint64 `json:"flush_ns"`
}

// dump prints the records that are still there.
func (o *ringsOptions) dump(w io.Writer, r *ring.Ring, now uint64) error {
	since := uint64(0)
	if o.last > 0 && now > uint64(o.last) {
		since = now - uint64(o.last)
	}
	d := dumper{ring: r, rank: r.Header().Rank, comms: commsOf(r), out: json.NewEncoder(w)}
	r.Snapshot(func(_ int, rec *ring.Record) {
		if c := rec.Clock(); rec.Kind() == ring.KindClock && c.Source == ring.SourceCUPTI && c.Raw != 0 && c.CUPTI != 0 {
			d.clock.Add(gpuclock.Pair{Host: c.Raw, Clock: c.CUPTI, Width: uint64(c.Width)})
		}
	})
	var failed error
	r.Snapshot(func(lane int, rec *ring.Record) {
		line := d.line(lane, rec)
		if failed == nil && line.End >= since {
			failed = d.out.Encode(line)
		}
	})
	if failed != nil {
		return fmt.Errorf("write records of %s: %w", r.Path(), failed)
	}
	return r.Err()
}

type dumper struct {
	ring  *ring.Ring
	rank  int32
	comms map[uint16]ring.Comm
	clock gpuclock.Pairs // CUPTI's, as far as it is recorded
	out   *json.Encoder
}

func (d *dumper) line(lane int, rec *ring.Record) ringRecord {
	l := ringRecord{
		Ring: printable(d.ring.Path()), Rank: d.rank, Lane: lane, Number: rec.Number(),
		Kind: rec.Kind().String(), Level: rec.Level().String(),
	}
	switch rec.Kind() {
	case ring.KindOp:
		l.Name, l.Begin, l.End, l.Detail = d.ring.String(uint16(rec.Func())), rec.EnqueueBegin(), rec.CompletedAt(), d.op(rec)
	case ring.KindStep:
		s := rec.StepMark()
		l.Begin, l.End, l.Detail = s.Begin, s.Begin, stepDetail{Step: s.Step, Thread: s.TID}
	case ring.KindScope:
		s := rec.Scope()
		l.Name, l.Begin, l.End, l.Detail = d.ring.String(s.Name), s.Begin, s.End, detailOfScope(&s)
	case ring.KindProxyStep:
		s := rec.ProxyStep()
		l.Name, l.Begin, l.End, l.Detail = d.ring.String(uint16(rec.Func())), s.Begin, s.Stop, detailOfProxyStep(&s)
	case ring.KindKernelChannel:
		s := rec.KernelChannel()
		l.Name, l.Begin, l.End, l.Detail = d.ring.String(uint16(rec.Func())), s.StartSeen, s.StopSeen, detailOfKernelChannel(&s)
	case ring.KindAPI:
		s := rec.API()
		l.Name, l.Begin, l.End, l.Detail = d.ring.String(s.Name), s.Begin, s.End, detailOfAPI(&s)
	case ring.KindNet:
		s := rec.Net()
		l.Begin, l.End, l.Detail = s.Begin, s.End, detailOfNet(&s)
	case ring.KindKernel:
		s := rec.Kernel()
		l.Name = d.ring.String(s.Name)
		l.Begin, l.End, l.Detail = detailOfKernel(&s, &d.clock)
	case ring.KindClock:
		s := rec.Clock()
		l.Begin, l.End, l.Detail = s.Raw, s.Raw, detailOfClock(&s)
	case ring.KindLink:
		s := rec.Link()
		l.Begin, l.End, l.Detail = s.At, s.At, detailOfLink(&s)
	}
	return l
}

func (d *dumper) op(rec *ring.Record) opDetail {
	o := opDetail{
		Comm: commName(d.comms, rec.Comm()), Seq: rec.Seq(), Op: rec.Handle(), Bytes: rec.Bytes(), RootOrPeer: rec.Root(),
		DType: d.ring.String(uint16(rec.DType())), Algo: d.ring.String(uint16(rec.Algo())), Proto: d.ring.String(uint16(rec.Proto())),
		Inferred: rec.Has(ring.FlagInferred),
	}
	if step, ok := rec.Step(); ok {
		o.Step = &step
	}
	if rec.Has(ring.FlagKernel) {
		o.KernelStart, o.KernelStop = rec.KernelStart(), rec.KernelStop()
	}
	if rec.Has(ring.FlagWaits) {
		gpu, peer, wire, flush := rec.Waits()
		o.Waits = &waitDetail{GPU: gpu, Peer: peer, Wire: wire, Flush: flush}
	}
	return o
}
