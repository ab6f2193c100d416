// SPDX-License-Identifier: Apache-2.0

package part

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// What a difference between rings and truth is about.
const (
	ncclAboutOps       = "operations"
	ncclAboutEnds      = "ends"
	ncclAboutComms     = "communicators"
	ncclAboutTimes     = "times"
	ncclAboutFrontiers = "frontiers"
)

// ncclTopics are all of them: without a ring none of them is right.
var ncclTopics = []string{ncclAboutOps, ncclAboutEnds, ncclAboutComms, ncclAboutTimes, ncclAboutFrontiers}

// ncclPair is an operation that the program did and the ring has.
type ncclPair struct {
	Rank   int
	Op     *ncclOp
	Record *ncclRecord
}

// ncclVerdict is what the comparison of rings with truth came to.
type ncclVerdict struct {
	Ranks    int
	Want     int // operations of the program, all ranks
	Pairs    []ncclPair
	Names    map[string]int      // "RING/SIMPLE" to operations
	Problems map[string][]string // by what they are about
}

func (v *ncclVerdict) problem(about, format string, args ...any) {
	v.Problems[about] = append(v.Problems[about], fmt.Sprintf(format, args...))
}

// nothing adds a problem to each topic.
func (v *ncclVerdict) nothing(format string, args ...any) {
	for _, about := range ncclTopics {
		v.problem(about, format, args...)
	}
}

// count returns how many operations have the flag.
func (v *ncclVerdict) count(f ring.Flags) (n int) {
	for _, p := range v.Pairs {
		if p.Record.has(f) {
			n++
		}
	}
	return n
}

// compareNCCL compares what the ranks did with what their rings have: every operation
// there exactly once, with its function, bytes, type and number, on the right
// communicator, completed.
func compareNCCL(truths []*ncclTruth, seen []*ringSeen) *ncclVerdict {
	v := &ncclVerdict{Ranks: len(truths), Names: map[string]int{}, Problems: map[string][]string{}}
	same := ncclSame{v: v, hashes: map[string]uint64{}, first: map[string]uint64{}}
	if len(truths) == 0 {
		v.nothing("got no rank that wrote what it did")
	}
	for _, t := range truths {
		v.Want += len(t.Ops)
		s := ringOf(seen, t.PID)
		if s == nil {
			v.nothing("rank %d: got no ring of process %d", t.Rank, t.PID)
			continue
		}
		if s.Header.Rank != int32(t.Rank) || s.Header.WorldSize != int32(t.World) {
			v.problem(ncclAboutComms, "rank %d: got a ring of rank %d of %d; want %d of %d", t.Rank, s.Header.Rank, s.Header.WorldSize, t.Rank, t.World)
		}
		if s.Lost > 0 {
			v.problem(ncclAboutOps, "rank %d: %d records were overwritten", t.Rank, s.Lost)
		}
		v.rank(t, s, &same)
		if !slices.ContainsFunc(v.Pairs, func(p ncclPair) bool { return p.Rank == t.Rank }) {
			v.nothing("rank %d: got none of the program's %d operations in its ring", t.Rank, len(t.Ops))
		}
	}
	return v
}

func ringOf(seen []*ringSeen, pid uint64) *ringSeen {
	for _, s := range seen {
		if s.Header.PID == pid {
			return s
		}
	}
	return nil
}

// rank compares one rank. Communicators are made when a group is first used, so both
// are in one order.
func (v *ncclVerdict) rank(t *ncclTruth, s *ringSeen, same *ncclSame) {
	groups := usedGroups(t)
	var comms []*ncclComm
	for i := range s.Comms {
		if c := &s.Comms[i]; len(c.Ops) > 0 || len(c.Frontiers) > 0 {
			comms = append(comms, c)
		}
	}
	if len(comms) != len(groups) {
		v.problem(ncclAboutComms, "rank %d: got operations on %d communicators; want %d", t.Rank, len(comms), len(groups))
	}
	for i, g := range groups {
		var c ncclComm
		if i < len(comms) {
			c = *comms[i]
			if c.Ranks != g.Size || c.Rank != g.Rank {
				v.problem(ncclAboutComms, "rank %d: group %s has rank %d of %d; want %d of %d", t.Rank, g.Name, c.Rank, c.Ranks, g.Rank, g.Size)
			}
			same.hash(t.Rank, g.Name, c.Hash)
		}
		v.group(t, g.Name, &c, same)
	}
}

// usedGroups returns the groups that have operations, in the order of their first.
func usedGroups(t *ncclTruth) (used []ncclGroup) {
	for i := range t.Ops {
		at := slices.IndexFunc(t.Groups, func(g ncclGroup) bool { return g.Name == t.Ops[i].Group })
		if at >= 0 && !slices.Contains(used, t.Groups[at]) {
			used = append(used, t.Groups[at])
		}
	}
	return used
}

// ncclKey names a sequence: NCCL numbers the operations of a function, the plugin the
// messages to a peer.
type ncclKey struct {
	function string
	peer     int32 // of messages; else 0
}

func (v *ncclVerdict) group(t *ncclTruth, group string, c *ncclComm, same *ncclSame) {
	want := map[ncclKey][]*ncclOp{}
	for i := range t.Ops {
		if o := &t.Ops[i]; o.Group == group {
			k := ncclKey{function: o.Function}
			if o.message() {
				k.peer = o.Peer
			}
			want[k] = append(want[k], o)
		}
	}
	got := map[ncclKey][]*ncclRecord{}
	for i := range c.Ops {
		k := ncclKey{function: c.Ops[i].Function, peer: c.Ops[i].Peer * int32(messageOf(&c.Ops[i]))}
		got[k] = append(got[k], &c.Ops[i])
	}
	keys := slices.Collect(maps.Keys(want))
	for k := range got {
		if want[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b ncclKey) int {
		return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.peer, b.peer))
	})
	for _, k := range keys {
		v.sequence(t.Rank, group, k, want[k], got[k], same)
	}
	v.frontiers(t.Rank, group, keys, got, c)
}

// sequence compares the operations of one function, by their numbers.
func (v *ncclVerdict) sequence(rank int, group string, k ncclKey, want []*ncclOp, got []*ncclRecord, same *ncclSame) {
	if len(want) != len(got) {
		v.problem(ncclAboutOps, "rank %d, %s: got %d %s; want %d", rank, group, len(got), k.function, len(want))
	}
	slices.SortStableFunc(got, func(a, b *ncclRecord) int { return cmp.Compare(a.Seq, b.Seq) })
	for i, r := range got {
		if r.Seq != got[0].Seq+uint64(i) {
			v.problem(ncclAboutOps, "rank %d, %s: got number %d of %s; want %d", rank, group, r.Seq, k.function, got[0].Seq+uint64(i))
			break
		}
	}
	if len(got) > 0 && messageOf(got[0]) == 0 {
		same.number(rank, group, k.function, got[0].Seq)
	}
	for len(want) > 0 && len(got) > 0 {
		n := 1 // operations of one call, which NCCL orders as it likes
		for n < len(want) && want[n].Call == want[0].Call {
			n++
		}
		v.call(rank, want[:n], got[:min(n, len(got))])
		want, got = want[n:], got[min(n, len(got)):]
	}
}

// call pairs the operations of one call with as many records.
func (v *ncclVerdict) call(rank int, want []*ncclOp, got []*ncclRecord) {
	left := slices.Clone(got)
	for _, o := range want {
		at := slices.IndexFunc(left, func(r *ncclRecord) bool { return r.Bytes == o.Bytes })
		if at < 0 {
			if len(left) > 0 {
				v.problem(ncclAboutOps, "rank %d: got %d bytes for %v", rank, left[0].Bytes, o)
			}
			continue
		}
		v.pair(rank, o, left[at])
		left = slices.Delete(left, at, at+1)
	}
}

func (v *ncclVerdict) pair(rank int, o *ncclOp, r *ncclRecord) {
	v.Pairs = append(v.Pairs, ncclPair{rank, o, r})
	if r.DType != o.DType {
		v.problem(ncclAboutOps, "rank %d: got type %s for %v; want %s", rank, r.DType, o, o.DType)
	}
	if (o.Function == "Broadcast" || o.Function == "Reduce") && r.Peer != o.Peer {
		v.problem(ncclAboutOps, "rank %d: got root %d for %v; want %d", rank, r.Peer, o, o.Peer)
	}
	if r.Completed == 0 || r.has(ring.FlagEnqueuedOnly) {
		v.problem(ncclAboutEnds, "rank %d: got no end of %v", rank, o)
	}
	if r.Order < o.Before || r.Order > o.After {
		v.problem(ncclAboutTimes, "rank %d: enqueueing of %v began %.3f ms after its call; want 0 to %.3f", rank, o, ms(r.Order, o.Before), ms(o.After, o.Before))
	}
	if !o.message() {
		v.Names[r.Algo+"/"+r.Proto]++
	}
}

// ms returns a less b in milliseconds.
func ms(a, b uint64) float64 { return float64(int64(a-b)) / 1e6 }

func (v *ncclVerdict) frontiers(rank int, group string, keys []ncclKey, got map[ncclKey][]*ncclRecord, c *ncclComm) {
	count, last := map[string]uint64{}, map[string]uint64{}
	for _, k := range keys {
		for _, r := range got[k] {
			count[k.function]++
			last[k.function] = max(last[k.function], r.Seq)
			if messageOf(r) == 1 {
				last[k.function] = count[k.function] - 1
			}
		}
	}
	for _, function := range slices.Sorted(maps.Keys(count)) {
		at := slices.IndexFunc(c.Frontiers, func(f ncclFrontier) bool { return f.Function == function })
		if at < 0 {
			v.problem(ncclAboutFrontiers, "rank %d, %s: got no frontier of %s", rank, group, function)
			continue
		}
		f := &c.Frontiers[at]
		if f.Total != count[function] || f.Open != 0 {
			v.problem(ncclAboutFrontiers, "rank %d, %s: got %d %s, %d open; want %d, none open", rank, group, f.Total, function, f.Open, count[function])
		}
		if f.Enqueued.Seq != last[function] || f.Completed.Seq != last[function] || !f.Completed.Known {
			v.problem(ncclAboutFrontiers, "rank %d, %s: %s is enqueued to %d and completed to %d; want %d", rank, group, function, f.Enqueued.Seq, f.Completed.Seq, last[function])
		}
	}
}

// ncclSame notes what must be the same on all ranks.
type ncclSame struct {
	v      *ncclVerdict
	hashes map[string]uint64
	first  map[string]uint64
}

func (s *ncclSame) hash(rank int, group string, hash uint64) {
	want, known := s.hashes[group]
	if !known {
		s.hashes[group] = hash
	} else if hash != want {
		s.v.problem(ncclAboutComms, "rank %d: group %s has hash %#x; want %#x", rank, group, hash, want)
	}
}

func (s *ncclSame) number(rank int, group, function string, first uint64) {
	key := group + " " + function
	want, known := s.first[key]
	if !known {
		s.first[key] = first
	} else if first != want {
		s.v.problem(ncclAboutOps, "rank %d, %s: got first number %d of %s; want %d", rank, group, first, function, want)
	}
}
