// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

const (
	glooBackend = "gloo"
	// coalescedName is of the entry that ends a batch.
	coalescedName = "coalesced"
)

// nameInfo is what an operation's recorded name says.
type nameInfo struct {
	known   bool
	backend string
	name    string // of the data model, else as recorded
	kind    model.OpKind
	ends    bool  // it ends a batch
	peer    int64 // of messages: the other side's rank in the group; -1 where it is not said
}

// info returns what the name of an entry says.
func (t *stater) info(e *Entry) *nameInfo {
	n := &t.names[e.name]
	if !n.known {
		*n = parseName(t.d.texts[e.name])
	}
	return n
}

// parseName reads "nccl:all_reduce", "nccl:send 0->1", "gloo:recv 3<-?".
func parseName(s string) nameInfo {
	n := nameInfo{known: true, kind: model.KindCollective, peer: -1}
	backend, op, ok := strings.Cut(s, ":")
	if !ok {
		backend, op = "", s
	}
	op, arrow, _ := strings.Cut(op, " ")
	n.backend, n.ends = backend, op == coalescedName
	switch n.name = torchname.Collective(op); n.name {
	case torchname.Send:
		n.kind, n.peer = model.KindSend, after(arrow, "->")
	case torchname.Recv:
		n.kind, n.peer = model.KindRecv, after(arrow, "<-")
	case "":
		n.name = clip(strings.Trim(op, "_"))
	}
	return n
}

// after returns the number behind sep; -1 where there is none.
func after(s, sep string) int64 {
	_, s, ok := strings.Cut(s, sep)
	if !ok || s == "" || len(s) > maxRankDigits {
		return -1
	}
	var n int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// maxRankDigits bounds the text of a rank: those up to maxRank have 7 digits.
const maxRankDigits = 7
