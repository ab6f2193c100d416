// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"cmp"
	"slices"
	"sort"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// joinLaunches finds the call that started each GPU operation.
func (t *Trace) joinLaunches() {
	sort.Sort(chunkedSort[launch]{&t.launches, func(a, b *launch) bool {
		if a.corr != b.corr {
			return a.corr < b.corr
		}
		return a.ts < b.ts
	}})
	for i := range t.ops.n {
		e := t.ops.at(i)
		if e.kind != evKernel && e.kind != evComm && e.kind != evCopy {
			continue
		}
		if e.launch = t.launchOf(e.corr); e.launch == 0 {
			t.stats.NoLaunch++
		}
	}
}

// launchOf returns the number of the launch with this correlation, 0 for none.
func (t *Trace) launchOf(corr uint32) uint32 {
	if corr == 0 {
		return 0
	}
	i := sort.Search(t.launches.n, func(i int) bool { return t.launches.at(i).corr >= corr })
	if i == t.launches.n || t.launches.at(i).corr != corr {
		return 0
	}
	return uint32(i + 1)
}

// joinMarks completes what is known of each communication kernel: by its own
// arguments, by those of the marks around its launch, by its name.
func (t *Trace) joinMarks() {
	sort.Sort(chunkedSort[event]{&t.marks, func(a, b *event) bool {
		return cmp.Or(cmp.Compare(a.tid, b.tid), cmp.Compare(a.ts, b.ts), cmp.Compare(b.dur, a.dur)) < 0
	}})
	byExt := map[uint32]int{}
	for i := range t.marks.n {
		if m := t.marks.at(i); m.ext != 0 {
			byExt[m.ext] = i
		}
	}
	ids := map[meta]uint32{}
	for i := range t.ops.n {
		e := t.ops.at(i)
		if e.kind != evComm {
			continue
		}
		m := t.metas[e.meta]
		t.fillFromMarks(&m, e, byExt)
		kern := t.names[e.name].kern
		m.fill(meta{name: kern.collective, dtype: kern.dtype, algo: kern.algo, proto: kern.proto, bytes: -1, size: -1, root: -1, peer: -1, local: -1, nelems: -1})
		e.meta = t.addMeta(ids, m, e.meta)
	}
}

// maxMarkNesting is how many marks may lie around a launch: record_param_comms,
// the annotation, and those of a coalescing group.
const maxMarkNesting = 8

// fillFromMarks takes arguments from the marks around the kernel's launch, the
// inner first; where the launch is unknown, from the one with its external id.
// Old traces write the correlation into both, which then says nothing.
func (t *Trace) fillFromMarks(m *meta, e *event, byExt map[uint32]int) {
	use := func(mark *event) {
		m.fill(t.metas[mark.meta])
		if e.val < 0 {
			e.val = mark.val
		}
	}
	if e.launch != 0 {
		l := t.launches.at(int(e.launch - 1))
		i := sort.Search(t.marks.n, func(i int) bool {
			k := t.marks.at(i)
			return k.tid > l.tid || (k.tid == l.tid && k.ts > l.ts)
		})
		for n := 0; i > 0 && n < maxMarkNesting; n++ {
			i--
			k := t.marks.at(i)
			if k.tid != l.tid {
				break
			}
			if k.end() >= l.ts {
				use(k)
			}
		}
	}
	if i, ok := byExt[e.ext]; ok && e.ext != e.corr && m.name == "" {
		use(t.marks.at(i))
	}
}

// addMeta numbers further arguments; beyond the limit the kernel keeps its own.
func (t *Trace) addMeta(ids map[meta]uint32, m meta, own uint32) uint32 {
	id, ok := ids[m]
	switch {
	case ok:
		return id
	case len(ids) >= t.o.MaxStrings:
		t.stats.OtherNames++
		return own
	}
	id = uint32(len(t.metas))
	ids[m] = id
	t.metas = append(t.metas, m)
	return id
}

// launchKey joins the launch of a CPU collective to its run: the backend takes
// launches from a queue with several threads, so that the order of runs is not
// quite the order of launches; among those of one size it is.
type launchKey struct {
	name   string
	nelems int64
}

// joinGloo finds the launch of each CPU collective. A run that began before the
// next launch of its size belongs to one from before the recording.
func (t *Trace) joinGloo() {
	queues := map[launchKey][]*event{}
	for i := range t.commLaunches.n {
		e := t.commLaunches.at(i)
		if m := &t.metas[e.meta]; m.name != "" {
			k := launchKey{m.name, m.nelems}
			queues[k] = append(queues[k], e)
		}
	}
	for _, q := range queues {
		slices.SortFunc(q, func(a, b *event) int { return cmp.Compare(a.ts, b.ts) })
	}
	t.launches.reset()
	for _, run := range t.sortedRuns() {
		m := &t.metas[run.meta]
		k := launchKey{m.name, m.nelems}
		if q := queues[k]; len(q) > 0 && q[0].ts <= run.ts {
			t.launches.add(launch{ts: q[0].ts, tid: q[0].tid})
			run.launch = uint32(t.launches.n)
			queues[k] = q[1:]
		} else {
			t.stats.NoLaunch++
		}
	}
}

func (t *Trace) sortedRuns() []*event {
	var runs []*event
	for i := range t.ops.n {
		if e := t.ops.at(i); e.kind == evGloo {
			runs = append(runs, e)
		}
	}
	slices.SortFunc(runs, func(a, b *event) int { return cmp.Or(cmp.Compare(a.ts, b.ts), cmp.Compare(a.tid, b.tid)) })
	return runs
}

// outermostHost keeps those operators of the host that lie in no other, and not
// in the launch of a collective: they are what a CPU run computes.
func (t *Trace) outermostHost() {
	for i := range t.commLaunches.n {
		t.host.add(*t.commLaunches.at(i))
	}
	sort.Sort(chunkedSort[event]{&t.host, func(a, b *event) bool {
		return cmp.Or(cmp.Compare(a.tid, b.tid), cmp.Compare(a.ts, b.ts), cmp.Compare(b.dur, a.dur), cmp.Compare(b.kind, a.kind)) < 0
	}})
	var outer outermost
	kept := 0
	for i := range t.host.n {
		e := t.host.at(i)
		switch {
		case outer.nested(e):
			t.stats.Nested++
		case e.kind == evHost:
			*t.host.at(kept) = *e
			kept++
		}
	}
	t.host.n = kept
	t.takeHost(true, evKernel)
}

// takeHost moves the host's operators to the operations, as the given kind.
func (t *Trace) takeHost(want bool, as eventKind) {
	for i := range t.host.n {
		if e := *t.host.at(i); want {
			e.kind = as
			e.flags |= flagHost
			t.ops.add(e)
		}
	}
	t.host.reset()
}

// collective returns the model's name of an event's collective.
func (t *Trace) collective(e *event) string { return t.metas[e.meta].name }

// opKind returns what kind of operation an event becomes.
func (t *Trace) opKind(e *event) model.OpKind {
	switch e.kind {
	case evComm, evGloo:
		switch t.collective(e) {
		case nameSend:
			return model.KindSend
		case nameRecv:
			return model.KindRecv
		}
		return model.KindCollective
	case evCopy:
		return model.KindCopy
	case evScope:
		return model.KindScope
	case evHost:
		return model.KindHost
	}
	return model.KindCompute
}
