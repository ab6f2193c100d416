// SPDX-License-Identifier: Apache-2.0

package straggler

import "github.com/lockstep-otel/lockstep/internal/model"

// commOp is a communication operation reduced to what the analysis of a step needs: a
// ninth of a model.Op.
type commOp struct {
	form       *commForm
	start, end int64
	launch     int64 // 0 where unknown
	lane       int64
	seq        int64 // n-th of its key in the step
	number     int64 // of the rendezvous, where numbered
	bytes      int64 // that the collective moves, -1 where unknown
	carried    int64 // that the operation worked on, 0 where unknown
	wire       float64
	wireSteps  int64
	commRank   int32 // -1 where unknown, as the next three are
	root       int32
	peer       int32
	peerLocal  int32
	clock      string // where it is not the rank's
	spot       uint64 // where it stands in its program, of one that met others
	stream     int32  // of its rank's
	numbered   bool
	met        bool
	inferred   bool // the end is no measurement
	wired      bool // wire is known
}

// commForm is what operations have in common that do the same in one group.
type commForm struct {
	commName
	id   uint32
	meet uint32 // number of the communicator, scope and name under which it meets others
	// group is the same, apart for groups that share a communicator's name.
	group uint32
	sort  uint64    // hash of kind, name and group size
	next  *commForm // the one that came after it last
}

type commName struct {
	kind       model.OpKind
	key        string
	collective string
	comm       string
	digest     string
	scope      model.SeqScope
	size       int64
}

// commForms numbers the forms of a job.
type commForms struct {
	known map[commName]*commForm
	meets map[meetName]uint32
	last  *commForm
	most  int64 // members of a group

	text, bytes int64 // of texts, and of all
}

// meetName is what operations that meet agree in, but for their number.
type meetName struct {
	comm, digest, name string
	scope              model.SeqScope
	message            bool
}

// maxForms bounds the distinct operations of all groups of a job: some tens for each
// rank of the largest.
const (
	maxForms = 1 << 17
	// maxFormText bounds the bytes of their texts: 256 for each on average, where a name and a
	// communicator's have some 50.
	maxFormText = 256 * maxForms
)

// of returns the form of an operation, or nil where there are too many. Programs repeat,
// so that most are the one that is guessed, or came after the last one before.
func (f *commForms) of(op *model.Op, guess *commForm) *commForm {
	if guess != nil && guess.is(op) {
		f.last = guess
		return guess
	}
	if f.last != nil {
		if next := f.last.next; next != nil && next.is(op) {
			f.last = next
			return next
		}
	}
	n := commName{
		kind: op.Kind, key: op.ComparisonKey(), collective: op.Collective.Name, comm: op.Comm.ID, digest: op.Comm.Digest,
		scope: op.Collective.SeqScope, size: op.Comm.Size.Or(0),
	}
	form := f.known[n]
	if form == nil {
		text := int64(len(n.key) + len(n.collective) + len(n.comm) + len(n.digest) + len(n.scope))
		if len(f.known) >= maxForms || f.text+text > maxFormText {
			return nil
		}
		f.text += text
		f.bytes += commFormBytes + text
		if f.known == nil {
			f.known, f.meets = map[commName]*commForm{}, map[meetName]uint32{}
		}
		form = &commForm{commName: n, id: uint32(len(f.known)), meet: f.meet(&n, ""), group: f.meet(&n, n.digest), sort: sortOf(&n)}
		f.known[n] = form
		f.most = max(f.most, n.size)
	}
	if f.last != nil {
		f.last.next = form
	}
	f.last = form
	return form
}

// is reports whether the operation has the name.
func (n *commName) is(op *model.Op) bool {
	return n.comm == op.Comm.ID && n.key == op.ComparisonKey() && n.size == op.Comm.Size.Or(0) && n.kind == op.Kind &&
		n.digest == op.Comm.Digest && n.collective == op.Collective.Name && n.scope == op.Collective.SeqScope
}

// meet numbers what operations that meet agree in.
func (f *commForms) meet(n *commName, digest string) uint32 {
	m := meetName{comm: n.comm, digest: digest, scope: n.scope, message: n.kind != model.KindCollective}
	if !m.message && n.scope != model.ScopeComm {
		m.name = n.collective
	}
	i, ok := f.meets[m]
	if !ok {
		i = uint32(len(f.meets))
		f.meets[m] = i
	}
	return i
}

// reduce fills what is kept of an operation, one by one in place: it is done for each.
func (f *commForm) reduce(op *model.Op, out *commOp) {
	c := &op.Collective
	out.form, out.start, out.end, out.launch, out.lane, out.seq = f, op.Start, op.End, launchOf(op), op.Lane(), op.Seq
	out.number, out.numbered, out.bytes, out.carried = c.Seq.V, c.Seq.OK, c.Bytes.Or(-1), max(0, op.WorkBytes.Or(0))
	out.wire, out.wired, out.wireSteps = op.Waits.Wire.V, op.Waits.Wire.OK, op.Waits.WireSteps.Or(0)
	out.commRank, out.root, out.peer, out.peerLocal = small(op.Comm.Rank), small(c.Root), small(op.Peer), small(op.PeerLocal)
	if out.clock != op.ClockID {
		out.clock = op.ClockID
	}
	out.inferred, out.met, out.stream, out.spot = op.EndInferred, false, 0, 0
}

// small returns the value of a rank, -1 where it is unknown or none.
func small(o model.Optional[int64]) int32 {
	if !o.OK || o.V < 0 || o.V >= 1<<31-1 {
		return -1
	}
	return int32(o.V)
}

// duration returns how long the operation ran; never negative.
func (o *commOp) duration() int64 { return max(0, o.end-o.start) }

// order is when the program issued the operation, as far as is known.
func (o *commOp) order() int64 {
	if o.launch != 0 {
		return o.launch
	}
	return o.start
}
