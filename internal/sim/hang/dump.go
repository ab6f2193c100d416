// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// View is how a rank's dump is taken.
type View struct {
	At      int64 // by the true clock, Unix ns
	Clock   int64 // what the rank's clock is ahead by, ns
	Buffer  int   // entries that the ring has room for
	Version string
	Stacks  bool
	Timeout time.Duration // of operations, as recorded
}

// watchdog is how long after its end an operation is retired at the latest, ns.
const watchdog = 100_000_000

// recorder writes a rank's entries as PyTorch's recorder does.
type recorder struct {
	j       *Job
	r       *rank
	v       View
	backend string
	local   map[int32]int64 // groups by their local numbers
	colls   [kinds]int64
	p2ps    [kinds]int64
	ops     [kinds]int64
	status  [kinds]frwrite.Status
	ended   [kinds]int64 // when what status says was last completed
	used    []kind
	records int64
	entries []frwrite.Entry
}

// Dump returns what a rank's recorder holds.
func (j *Job) Dump(id int, v View) *frwrite.Dump {
	rec := &recorder{j: j, r: &j.ranks[id], v: v, backend: "nccl", local: map[int32]int64{}}
	if j.Gloo {
		rec.backend = "gloo"
	}
	for g := range j.groups {
		if slices.Contains(j.groups[g].ranks, int64(id)) {
			rec.local[int32(g)] = int64(len(rec.local))
		}
	}
	for i := range rec.r.host {
		if rec.r.created[i] <= v.At {
			rec.record(i)
		}
	}
	d := &frwrite.Dump{Version: v.Version, LibVersion: "2.27.3", Entries: rec.entries, Stacks: v.Stacks}
	if j.Gloo {
		d.LibVersion = ""
	}
	rec.groups(d)
	return d
}

// groups writes those that were used, the only ones whose communicator was made. Gloo's have no
// name when they are recorded, so that each overwrites the one before.
func (rec *recorder) groups(d *frwrite.Dump) {
	slices.Sort(rec.used)
	for _, k := range rec.used {
		g := rec.j.places[rec.r.id][k].group
		gr := frwrite.Group{Name: rec.j.groups[g].name, Desc: descs[k], Ranks: rec.j.groups[g].ranks}
		d.Status = append(d.Status, rec.status[k])
		if rec.j.Gloo {
			gr.Name = ""
			d.Groups = nil
		}
		d.Groups = append(d.Groups, gr)
	}
}

// ended tells when an instruction was seen to be over, 0 where it was not.
func (rec *recorder) end(i int) int64 {
	if at := rec.r.done[i]; at <= rec.v.At && at <= rec.r.blind {
		return at
	}
	return 0
}

func (rec *recorder) record(i int) {
	in := &rec.r.program[i]
	if in.do != call && in.do != post || in.do == post && rec.j.Gloo {
		return
	}
	k := in.kind
	if !slices.Contains(rec.used, k) {
		rec.used = append(rec.used, k)
		rec.status[k] = frwrite.Status{PGID: rec.local[rec.j.places[rec.r.id][k].group], Enqueued: -1, Started: -1, Completed: -1}
	}
	seq := &rec.colls[k]
	if in.do == post {
		seq = &rec.p2ps[k]
	}
	*seq++
	switch {
	case in.do == call:
		rec.ops[k]++
		rec.add(i, rec.backend+":"+in.name, false, true)
	case !in.batch:
		rec.ops[k]++
		rec.add(i, rec.messageName(i, in.msgs[0]), true, true)
	default:
		for _, m := range in.msgs {
			rec.ops[k]++
			rec.add(i, rec.messageName(i, m), true, false)
		}
		rec.add(i, rec.backend+":coalesced", false, true)
	}
	number := *seq
	if rec.j.Gloo {
		number = rec.ops[k]
	}
	rec.status[k].Enqueued = number
	if at := rec.end(i); at > 0 && at >= rec.ended[k] {
		rec.status[k].Completed, rec.ended[k] = number, at
	}
}

func (rec *recorder) messageName(i int, m message) string {
	k := rec.r.program[i].kind
	me := int(rec.j.places[rec.r.id][k].member)
	other := int(rec.j.places[rec.j.peer(rec.r.id, i, m)][k].member)
	if m.send {
		return rec.backend + ":send " + strconv.Itoa(me) + "->" + strconv.Itoa(other)
	}
	return rec.backend + ":recv " + strconv.Itoa(me) + "<-" + strconv.Itoa(other)
}

// add records an entry; ends says that its events are those of the instruction.
func (rec *recorder) add(i int, name string, p2p, ends bool) {
	in := &rec.r.program[i]
	g := &rec.j.groups[rec.j.places[rec.r.id][in.kind].group]
	e := frwrite.Entry{
		RecordID: rec.records, PGID: rec.status[in.kind].PGID, Group: g.name, Desc: descs[g.kind],
		ThreadName: "python3", ThreadID: "23456244340032",
		CollectiveSeq: rec.colls[in.kind], P2PSeq: rec.p2ps[in.kind], OpID: rec.ops[in.kind],
		Name: name, Created: rec.r.created[i] + rec.v.Clock, State: frwrite.Scheduled,
		TimeoutMS: rec.v.Timeout.Milliseconds(), P2P: p2p,
	}
	if in.do == call || p2p {
		e.In, e.Out = rec.sizes(in)
		e.InTypes, e.OutTypes = []string{in.dtype}, []string{in.dtype}
	}
	if rec.v.Stacks {
		e.Frames = stackOf(in)
	}
	if at := rec.end(i); at > 0 && ends {
		e.Retired = at+watchdog <= rec.v.At
		if rec.j.Gloo {
			e.Retired = true
		} else {
			e.State, e.Completed = frwrite.Completed, at+rec.v.Clock
		}
	}
	rec.records++
	if rec.v.Buffer > 0 && len(rec.entries) >= 2*rec.v.Buffer {
		rec.entries = append(rec.entries[:0], rec.entries[len(rec.entries)-rec.v.Buffer:]...)
	}
	rec.entries = append(rec.entries, e)
}

// sizes returns what goes in and comes out; of an uneven exchange each member's own, which over
// all members sum up to the same.
func (rec *recorder) sizes(in *instr) (ins, outs [][]int64) {
	if !in.uneven {
		return [][]int64{in.in}, [][]int64{in.out}
	}
	p := rec.j.places[rec.r.id][in.kind]
	n := int32(len(rec.j.groups[p.group].ranks))
	seq := rec.colls[in.kind]
	return [][]int64{{in.in[0] + uneven(p.group, seq, p.member), hidden}}, [][]int64{{in.out[0] + uneven(p.group, seq, (p.member+1)%n), hidden}}
}

// uneven is by how many rows a member's share is off, from -100 to 99.
func uneven(group int32, seq int64, member int32) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte{byte(group), byte(group >> 8), byte(seq), byte(seq >> 8), byte(member)})
	return int64(h.Sum32()%200) - 100
}

// stackOf returns a call stack as a training program has them: few different ones.
func stackOf(in *instr) []frwrite.Frame {
	out := []frwrite.Frame{{Name: in.name, File: "torch/distributed/distributed_c10d.py", Line: 2800}}
	for depth := range 14 {
		out = append(out, frwrite.Frame{Name: "forward", File: "megatron/core/" + files[depth%len(files)] + ".py", Line: int64(100*depth) + int64(in.kind)})
	}
	return append(out, frwrite.Frame{Name: "train_step", File: "pretrain.py", Line: 1412}, frwrite.Frame{Name: "<module>", File: "pretrain.py", Line: 1700})
}

var files = []string{"tensor_parallel/mappings", "transformer/moe/token_dispatcher", "transformer/transformer_layer", "pipeline_parallel/schedules"}
