// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// Directions of point-to-point operations, as PyTorch names them.
const (
	nameSend = torchname.Send
	nameRecv = torchname.Recv
)

// markName takes the collective out of an annotation's name: "nccl:all_reduce",
// "nccl:send 0->1", "gloo:all_reduce", "c10d::allreduce_". peer is the number
// behind the arrow, a rank of the communicator, or -1.
func markName(s string) (collective string, peer int64) {
	_, s, _ = strings.Cut(s, ":")
	s, arrow, _ := strings.Cut(strings.TrimPrefix(s, ":"), " ")
	peer = -1
	if i := strings.LastIndexAny(arrow, ">-"); i >= 0 {
		if n, ok := parseInt([]byte(arrow[i+1:])); ok {
			peer = n
		}
	}
	return torchname.Collective(s), peer
}

// meta are the arguments of a collective. It is comparable, so that the
// operations that share all of them share one.
type meta struct {
	name   string // of the model, or send or recv; empty unknown
	dtype  string
	bytes  int64  // input of this rank; -1 unknown
	size   int64  // of the group; -1 unknown
	root   int64  // communicator rank; -1 unknown
	peer   int64  // global rank; -1 unknown
	local  int64  // communicator rank of the peer; -1 unknown
	pg     uint32 // process group's name
	desc   uint32
	ranks  uint32 // its ranks, as written
	algo   string
	proto  string
	noSeq  bool // Seq counts messages of this process: it joins nobody
	nelems int64
}

var noMeta = meta{bytes: -1, size: -1, root: -1, peer: -1, local: -1, nelems: -1}

// fill takes from other what m does not know.
func (m *meta) fill(o meta) {
	if m.name == "" || (m.name == model.SendRecv && o.name != "") {
		m.name = o.name
	}
	m.dtype = firstText(m.dtype, o.dtype)
	m.algo, m.proto = firstText(m.algo, o.algo), firstText(m.proto, o.proto)
	for _, p := range []struct{ to, from *int64 }{
		{&m.bytes, &o.bytes}, {&m.size, &o.size}, {&m.root, &o.root}, {&m.peer, &o.peer}, {&m.local, &o.local}, {&m.nelems, &o.nelems},
	} {
		if *p.to < 0 {
			*p.to = *p.from
		}
	}
	if m.pg == 0 {
		m.pg, m.desc, m.ranks = o.pg, o.desc, o.ranks
	}
	m.noSeq = m.noSeq || o.noSeq
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
