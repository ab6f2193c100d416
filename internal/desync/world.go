// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"iter"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// world is all ranks of the incident, by index, and the graph over them.
type world struct {
	a     *Analyzer
	ranks []*rank // sorted by id; of some there is no view
	index map[int64]int32
	heads [][]int32 // by rank: the nodes that it waits in
	first []int32   // by rank: the node that it issued first of those; -1: none
	nodes []*node
	byKey map[nodeKey]int32
	aside map[nodeKey]*node // operations that nobody waits in, made when asked for; nil: none recorded it
	kinds []commKind        // by group; made when first asked for
	// orders are which of two operations comes first, as far as that was asked for.
	orders map[pair]int
	// kindOrders are the same by kinds of communicators, for ranks without a state.
	kindOrders map[kindPair]int
	// concernedIn are the nodes of each rank from concernFrom on; made when first asked for.
	concernedIn, concernFrom []int32
	edges                    [][]int32 // by vertex: ranks first, nodes behind them
	maybe                    [][]int32 // edges that may hold
	back                     [][]int32 // both, reversed; made when first asked for
	stuck                    []bool    // by rank: its host stands still, though what it has open did not stop others
	stood                    standing
	moved                    string // why the states cannot be of one time; empty: they can
	mixed                    string // why some of them tell no time and are of another; empty: nothing says so
	// movedOrFailed is why they cannot, unless an operation of Gloo failed.
	movedOrFailed string
	ran           string // why what was found may be of a job that runs; empty: it is not
}

// nodeKey is an operation over all ranks. A message has two ends, and is numbered from the
// front of what is open between them; an operation that is counted by its process alone is
// of that rank.
type nodeKey struct {
	opKey
	src, dst int64
}

// holder is a rank that has an operation open.
type holder struct {
	rank int32
	op   *op
	head bool
	at   int32 // node at the front of its stream
}

// node is an operation that somebody waits in.
type node struct {
	key     nodeKey
	group   *group
	name    string
	message bool
	local   bool // counted by its process: nobody else's number can be compared
	holders []holder
	// What the other members did. Ranks are indices.
	done    []int32
	missing []int32 // have not enqueued it
	absent  []int32 // there is no state of them
	unknown []int32 // what is recorded does not tell
	outrun  bool    // somebody is through a later one that none can leave before all have entered
	idle    int     // of missing, those that wait for nothing; -1: not counted yet
	before  int32   // the node before it on its communicator that others wait in; -1: none
}

// maxHeads bounds the operations of one communicator and function that are compared with
// all of its members: those with the lowest numbers, since whoever waits in a later one waits
// behind them.
const maxHeads = 64

func (a *Analyzer) world() *world {
	w := &world{a: a, index: map[int64]int32{}, byKey: map[nodeKey]int32{}}
	known := a.sortedRanks()
	a.settleGroups(known)
	a.contradictions(known)
	a.renumber(known)
	w.addRanks(known)
	w.addUnrecorded()
	w.share(known)
	w.foreign()
	w.outdated()
	w.failedCalls()
	w.addHeads()
	w.standStill()
	w.addHolders()
	w.nameNodes()
	w.judgeMembers()
	w.connect()
	return w
}

func (a *Analyzer) sortedRanks() []*rank {
	out := make([]*rank, 0, len(a.ranks))
	for _, r := range a.ranks {
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y *rank) int { return int(x.id - y.id) })
	return out
}

// addRanks gives an index to every rank that is known of: by a state, as absent, or as a
// member.
func (w *world) addRanks(known []*rank) {
	seen := map[int64]bool{}
	var extra []*rank
	note := func(id int64) {
		if id >= 0 && !seen[id] && len(seen) < w.a.cfg.MaxRanks {
			seen[id] = true
			extra = append(extra, &rank{id: id})
		}
	}
	for _, r := range known {
		seen[r.id] = true
	}
	for id := range w.a.absent {
		note(id)
	}
	for _, g := range w.a.groups.all {
		for _, id := range g.members {
			note(id)
		}
	}
	for id := range min(w.a.job.WorldSize.Or(0), int64(w.a.cfg.MaxRanks)) {
		note(id)
	}
	w.ranks = append(slices.Clone(known), extra...)
	slices.SortFunc(w.ranks, func(x, y *rank) int { return int(x.id - y.id) })
	for i, r := range w.ranks {
		w.index[r.id] = int32(i)
		if b, ok := w.a.absent[r.id]; ok && b.Reason == model.AbsentDead {
			r.process = model.ProcessDead
		}
	}
	w.heads = make([][]int32, len(w.ranks))
	w.first = make([]int32, len(w.ranks))
	for i := range w.first {
		w.first[i] = -1
	}
}

// share spreads that a communicator's numbers count messages, too: it is known where a state
// says so, and may be where messages were sent and a state has nothing but the numbers.
func (w *world) share(known []*rank) {
	messages := make([]bool, len(w.a.groups.all))
	for _, r := range known {
		for o := range r.recorded() {
			messages[o.group] = messages[o.group] || o.message()
		}
	}
	by := make([]int32, len(messages)) // who recorded something last
	for i, r := range known {
		if r.view == nil || r.view.source != model.StateFlightRecorder {
			continue
		}
		for o := range r.recorded() {
			by[o.group] = int32(i + 1)
		}
		for k := range r.view.comms {
			c := &r.view.comms[k]
			c.p2pShared = c.p2pShared || w.a.groups.all[c.group].shared || messages[c.group] && by[c.group] != int32(i+1)
		}
	}
}

// recorded are the operations of a rank's view, those that are open first.
func (r *rank) recorded() iter.Seq[*op] {
	if r.view == nil {
		return func(func(*op) bool) {}
	}
	return r.view.all()
}

// stream is where operations of a rank run in order: the collectives and the batched messages
// of a communicator share one; single messages have one for each pair.
type stream struct {
	group int32
	pair  int64 // none: the communicator's own
}

func (o *op) stream() stream {
	if o.message() && o.batch == none {
		return stream{o.group, o.peer}
	}
	return stream{o.group, none}
}

// fewStreams is up to how many streams of a rank are looked through one by one.
const fewStreams = 16

// fronts finds of each operation that a rank has open which is at the front of its stream: the
// places of those operations, in the order of v.open.
func fronts(v *view) []int32 {
	var first []int32 // of each stream
	var more map[stream]int32
	of := make([]int32, len(v.open))
	for i := range v.open {
		s := v.open[i].stream()
		k := slices.IndexFunc(first, func(f int32) bool { return v.open[f].stream() == s })
		at, known := more[s]
		switch {
		case k >= 0:
			at = first[k]
		case known:
		case len(first) < fewStreams:
			at, first = int32(i), append(first, int32(i))
		default:
			if more == nil {
				more = map[stream]int32{}
			}
			at, more[s] = int32(i), int32(i)
		}
		of[i] = at
	}
	return of
}

// leads reports whether o runs at the front of its stream, which op f does: members of a
// batch run together.
func (o *op) leads(f *op) bool {
	return o == f || o.batch != none && o.batch == f.batch && o.group == f.group
}

// addHeads makes a node of every operation at the front of a stream.
func (w *world) addHeads() {
	each(len(w.ranks), func(r int) {
		if v := w.ranks[r].view; v != nil && len(v.open) > 0 {
			v.at, v.keys = fronts(v), w.keys(v, w.ranks[r].id)
		}
	})
	for r := range w.ranks {
		v := w.ranks[r].view
		if v == nil {
			continue
		}
		for i := range v.open {
			o := &v.open[i]
			if !o.leads(&v.open[v.at[i]]) {
				continue
			}
			n := w.node(v.keys[i], o)
			w.heads[r] = append(w.heads[r], n)
			if w.first[r] < 0 {
				w.first[r] = n
			}
		}
	}
}

func (w *world) node(k nodeKey, o *op) int32 {
	if i, ok := w.byKey[k]; ok {
		return i
	}
	i := int32(len(w.nodes))
	g := w.a.groups.all[k.group]
	w.nodes = append(w.nodes, &node{
		key: k, group: g, name: w.a.sigs.all[o.sig].Name, message: o.message(), idle: -1, before: -1,
		local: !o.message() && k.src != none || o.message() && (k.dst == none || k.src == none),
	})
	w.byKey[k] = i
	return i
}

// addHolders notes who has each of the nodes open, at the front of a stream or behind.
func (w *world) addHolders() {
	for r := range w.ranks {
		v := w.ranks[r].view
		if v == nil || len(v.open) == 0 {
			continue
		}
		for i := range v.open {
			n, ok := w.byKey[v.keys[i]]
			if !ok {
				continue
			}
			o, front := &v.open[i], v.at[i]
			h := holder{rank: int32(r), op: o, head: o.leads(&v.open[front]), at: n}
			if !h.head {
				h.at = w.byKey[v.keys[front]]
			}
			w.nodes[n].holders = append(w.nodes[n].holders, h)
		}
		v.at, v.keys = nil, nil
	}
}

// vertex of a node in the graph; ranks are the vertices before.
func (w *world) vertex(n int32) int32 { return int32(len(w.ranks)) + n }

func (w *world) isRank(v int32) bool { return int(v) < len(w.ranks) }

func (w *world) nodeAt(v int32) *node { return w.nodes[int(v)-len(w.ranks)] }

func (n *node) holds(rank int32) *holder {
	i, ok := slices.BinarySearchFunc(n.holders, rank, func(h holder, r int32) int { return int(h.rank - r) })
	if !ok {
		return nil
	}
	return &n.holders[i]
}
