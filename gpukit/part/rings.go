// SPDX-License-Identifier: Apache-2.0

package part

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringSeen is what a ring holds of one process.
type ringSeen struct {
	Header    ring.Header
	Closed    bool
	Comms     []ncclComm // by time of making
	Drops     map[string]uint64
	Kinds     map[string]uint64 // records by kind
	Lost      uint64            // records that were overwritten
	Witnesses ring.Witness
	CUPTI     ring.CUPTIState
	Result    uint32 // CUPTI's last
	Ran       uint64 // of kernels and copies, in CUPTI's ns; turns of others count, too
	Longest   uint64 // of them, ns
}

// ncclComm is a communicator with what was done on it.
type ncclComm struct {
	ring.Comm
	Ops       []ncclRecord // by function, then number
	Frontiers []ncclFrontier
}

// ncclRecord is an operation as the ring has it.
type ncclRecord struct {
	Function, DType, Algo, Proto string
	Seq, Bytes                   uint64
	Peer                         int32
	Order                        uint64 // when its enqueueing began, ns
	Completed                    uint64 // ns; 0: it is not
	KernelStart, KernelStop      uint64
	Flags                        ring.Flags
	Waits                        uint64 // of the proxy, all kinds, ns
}

func (r *ncclRecord) has(f ring.Flags) bool { return r.Flags&f == f }

type ncclFrontier struct {
	Function string
	ring.Frontier
}

// readRings reads the rings of a directory, by rank.
func readRings(dir string) ([]*ringSeen, error) {
	paths, refused := ring.Discover(dir, ring.Options{})
	if len(refused) > 0 {
		return nil, fmt.Errorf("find rings: %w", refused[0])
	}
	var list []*ringSeen
	for _, path := range paths {
		s, err := readRing(path)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *ringSeen) int { return cmp.Compare(a.Header.Rank, b.Header.Rank) })
	return list, nil
}

func readRing(path string) (*ringSeen, error) {
	r, err := ring.Open(path, ring.Options{})
	if err != nil {
		return nil, fmt.Errorf("read ring: %w", err)
	}
	defer func() { _ = r.Close() }() // only read from
	s := &ringSeen{Header: r.Header(), Drops: map[string]uint64{}, Kinds: map[string]uint64{}, Witnesses: r.Witnesses()}
	if _, s.Closed, err = r.Alive(); err != nil {
		return nil, fmt.Errorf("read ring: %w", err)
	}
	s.CUPTI, s.Result = r.CUPTI()
	comms := map[uint16]*ncclComm{}
	for _, c := range r.Comms(nil) {
		comms[c.Index] = &ncclComm{Comm: c}
	}
	of := func(index uint16) *ncclComm {
		if comms[index] == nil {
			comms[index] = &ncclComm{Comm: ring.Comm{Index: index}}
		}
		return comms[index]
	}
	lost := r.Snapshot(func(_ int, rec *ring.Record) {
		s.Kinds[rec.Kind().String()]++
		switch rec.Kind() {
		case ring.KindOp:
			c := of(rec.Comm())
			c.Ops = append(c.Ops, recordOf(r, rec))
		case ring.KindKernel:
			k := rec.Kernel()
			s.Ran += k.End - k.Start
			s.Longest = max(s.Longest, k.End-k.Start)
		}
	})
	for _, l := range r.Lanes(nil) {
		s.Lost += l.Head
	}
	s.Lost -= min(s.Lost, lost.Read)
	for _, f := range r.Frontiers(nil) {
		c := of(f.Comm)
		c.Frontiers = append(c.Frontiers, ncclFrontier{r.String(uint16(f.Func)), f})
	}
	for i, n := range r.Drops() {
		if n > 0 {
			s.Drops[ring.DropName(i)] = n
		}
	}
	for _, c := range comms {
		c.sort()
		s.Comms = append(s.Comms, *c)
	}
	slices.SortFunc(s.Comms, func(a, b ncclComm) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Index, b.Index))
	})
	return s, r.Err()
}

func recordOf(r *ring.Ring, rec *ring.Record) ncclRecord {
	gpu, peer, wire, flush := rec.Waits()
	return ncclRecord{
		Function: r.String(uint16(rec.Func())), DType: r.String(uint16(rec.DType())), Algo: r.String(uint16(rec.Algo())),
		Proto: r.String(uint16(rec.Proto())), Seq: rec.Seq(), Bytes: rec.Bytes(), Peer: rec.Peer(), Order: rec.EnqueueBegin(),
		Completed: rec.CompletedAt(), KernelStart: rec.KernelStart(), KernelStop: rec.KernelStop(), Flags: rec.Flags(),
		Waits: gpu + peer + wire + flush,
	}
}

func (c *ncclComm) sort() {
	slices.SortFunc(c.Ops, func(a, b ncclRecord) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Peer, b.Peer)*messageOf(&a), cmp.Compare(a.Seq, b.Seq))
	})
}

// messageOf returns 1 for a message, whose number counts those to its peer, and 0 for
// a collective.
func messageOf(r *ncclRecord) int {
	if r.Flags&(ring.FlagSend|ring.FlagRecv) != 0 {
		return 1
	}
	return 0
}

// ops returns how many operations the ring has.
func (s *ringSeen) ops() (n int) {
	for i := range s.Comms {
		n += len(s.Comms[i].Ops)
	}
	return n
}

// abi returns the newest version of the profiler interface in use.
func (s *ringSeen) abi() (v uint32) {
	for i := range s.Comms {
		v = max(v, s.Comms[i].ABI)
	}
	return v
}
