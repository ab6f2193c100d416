// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// rawEvent are the members of an event, as written.
type rawEvent struct {
	complete                     bool // has a duration; of others, nothing else is set
	cat, name, pid, tid, ts, dur []byte
	args                         []byte
}

// scanEvent finds the members of the event at the start of b.
func scanEvent(b []byte, e *rawEvent) (int, error) {
	*e = rawEvent{}
	m := object(b, 0)
	for m.next() {
		switch string(m.key) {
		case "ph":
			if string(m.val) != `"X"` {
				return skipNested(b, 0)
			}
			e.complete = true
		case "cat":
			e.cat = text(m.val)
		case "name":
			e.name = text(m.val)
		case "pid":
			e.pid = m.val
		case "tid":
			e.tid = m.val
		case "ts":
			e.ts = m.val
		case "dur":
			e.dur = m.val
		case "args":
			e.args = m.val
		}
	}
	return m.i, m.err
}

// text returns a string value without quotes; escapes stay, save where decoded
// by unescape.
func text(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return v[1 : len(v)-1]
}

// rawArgs are the arguments that we use, as written.
type rawArgs struct {
	ext, corr, stream, grid, bytes []byte
	dims, types                    []byte
	collective, dtype, nelems      []byte
	size, pg, desc, ranks          []byte
	seq, rank, src, dst, root      []byte
}

func (p *parser) scanArgs(b []byte) *rawArgs {
	a := &p.args
	*a = rawArgs{}
	if len(b) < 2 || b[0] != '{' {
		return a
	}
	m := object(b, 0)
	for m.next() {
		if f := a.field(m.key); f != nil {
			*f = m.val
		}
	}
	return a
}

// field returns where the value of a key goes, nil for keys that are not used.
func (a *rawArgs) field(key []byte) *[]byte {
	switch string(key) {
	case "External id", "external id":
		return &a.ext
	case "correlation":
		return &a.corr
	case "stream":
		return &a.stream
	case "grid":
		return &a.grid
	case "bytes", "Bytes":
		return &a.bytes
	case "Input Dims", "Input dims":
		return &a.dims
	case "Input type":
		return &a.types
	case "Collective name":
		return &a.collective
	case "dtype":
		return &a.dtype
	case "In msg nelems":
		return &a.nelems
	case "Group size":
		return &a.size
	case "Process Group Name":
		return &a.pg
	case "Process Group Description":
		return &a.desc
	case "Process Group Ranks":
		return &a.ranks
	case "Seq":
		return &a.seq
	case "Rank":
		return &a.rank
	case "Src Rank":
		return &a.src
	case "Dst Rank":
		return &a.dst
	case "Root", "Root Rank":
		return &a.root
	}
	return nil
}

// kindOf tells what an event is by its category and name.
func kindOf(cat, name []byte) eventKind {
	switch string(cat) {
	case "kernel", "Kernel":
		return evKernel
	case "gpu_memcpy", "gpu_memset", "Memcpy", "Memset":
		return evCopy
	case "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "hip_api", "Runtime":
		return evLaunch
	case "user_annotation", "cpu_op", "Operator":
	default:
		return evSkip
	}
	operator := cat[0] != 'u'
	switch {
	case bytes.HasPrefix(name, []byte("ProfilerStep#")):
		return evStep
	case bytes.HasPrefix(name, []byte("nccl:")), bytes.HasPrefix(name, []byte("rccl:")), string(name) == "record_param_comms":
		return evNCCLMark
	case bytes.HasPrefix(name, []byte("gloo:")):
		return evGloo
	case bytes.HasPrefix(name, []byte("c10d::")), bytes.HasPrefix(name, []byte("_c10d_functional::")):
		return evCommLaunch
	case operator:
		return evHost
	}
	return evScope
}

// names holds the distinct names by hash of their bytes and use: 64 bits, of
// which a file's 65,536 names collide with a probability of 1e-10.
type names struct {
	seed  maphash.Seed
	ids   map[uint64]uint32
	all   []name
	limit int
	over  *counterAt
	step  func(string) (family string, n int64)
}

func newNames(o Options, over *counterAt) *names {
	return &names{
		seed: maphash.MakeSeed(), ids: map[uint64]uint32{}, all: []name{{text: "(other)", step: -1}},
		limit: o.MaxStrings, over: over, step: func(s string) (string, int64) { return stepAnnotation(o.StepPattern, s) },
	}
}

func (n *names) id(raw []byte, kind eventKind, at int64) uint32 {
	h := maphash.Bytes(n.seed, raw) ^ uint64(kind)
	if id, ok := n.ids[h]; ok {
		return id
	}
	if len(n.all) > n.limit {
		n.over.hit(at)
		return 0
	}
	id := uint32(len(n.all))
	n.ids[h] = id
	n.all = append(n.all, n.make(unescape(raw[:min(len(raw), maxRawName)]), kind))
	return id
}

// maxRawName bounds what of a name is looked at: the longest kernel names have
// some thousand bytes.
const maxRawName = 16 << 10

// unnamed is shown for events without a name.
const unnamed = "(unnamed)"

func (n *names) make(raw string, kind eventKind) name {
	out := name{text: kernelname.Clip(raw), step: -1}
	switch kind {
	case evKernel:
		out.kern = parseKernelName(raw)
		out.text = kernelname.Shown(raw)
		out.key = kernelname.Key(raw)
	case evScope:
		out.fam, out.step = n.step(raw)
	case evLaunch:
		out.api = apiOf(raw)
	}
	out.text = firstText(out.text, unnamed)
	if out.key == out.text {
		out.key = ""
	}
	return out
}

// apiKind says what a call of the GPU runtime can start.
type apiKind uint8

const (
	apiNothing apiKind = iota
	apiLaunch
	apiGraph
)

// inert begin the names of calls that start nothing on the GPU, which are the
// greater part of all calls.
var inert = []string{
	"cudaevent", "cudastream", "cudapointer", "cudaget", "cudadevice", "cudafunc", "cudaoccupancy", "cudapeek",
	"hipevent", "hipstream", "hippointer", "hipget", "hipdevice", "hipfunc", "hipoccupancy", "hippeek",
}

func apiOf(name string) apiKind {
	lower := strings.ToLower(name)
	switch {
	case strings.Contains(lower, "graphlaunch"):
		return apiGraph
	case hasAnyPrefix(lower, inert):
		return apiNothing
	}
	return apiLaunch
}

// metaOf reads what an event's own arguments say of a collective, and its Seq.
func (p *parser) metaOf(a *rawArgs, at int64) (m meta, seq int64) {
	m, seq = noMeta, -1
	if a.dims != nil {
		m.nelems, m.bytes, m.dtype = inputs(a.dims, a.types)
	}
	if a.collective == nil {
		return m, seq
	}
	m.name = torchname.Collective(string(text(a.collective)))
	if n, ok := parseInt(a.nelems); ok && n >= 0 {
		m.nelems = n
	}
	if d, ok := torchname.DTypeOf(string(text(a.dtype))); ok {
		m.dtype = d.Name
		m.bytes = times(m.nelems, d.Size)
	}
	m.size = intOr(a.size)
	m.pg, m.desc = p.texts.id(text(a.pg), at), p.texts.id(text(a.desc), at)
	m.ranks = p.ranks.id(listText(a.ranks), at)
	p.peers(&m, a)
	return m, intOr(a.seq)
}

// peers reads who is on the other side. "Rank" is the root for collectives that
// have one and the peer, inside its group, for messages.
func (p *parser) peers(m *meta, a *rawArgs) {
	switch m.name {
	case model.Broadcast, model.Reduce:
		if m.root = intOr(a.root); m.root < 0 {
			m.root = intOr(a.rank)
		}
	case nameSend:
		m.peer, m.local, m.noSeq = intOr(a.dst), intOr(a.rank), true
	case nameRecv:
		m.peer, m.local, m.noSeq = intOr(a.src), intOr(a.rank), true
	}
}

// intOr returns the number, or -1 where there is none.
func intOr(b []byte) int64 {
	if n, ok := parseInt(b); ok && n >= 0 {
		return n
	}
	return -1
}
