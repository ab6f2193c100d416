// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// keep stores the event that was just scanned, if anything needs it. The scanned
// slices are valid until the next event is read.
func (p *parser) keep(at int64) {
	raw := &p.event
	kind := evSkip
	if raw.complete {
		kind = kindOf(raw.cat, raw.name)
	}
	if kind == evSkip || (kind == evHost && p.gpu && !p.o.HostOps) {
		p.t.stats.NotNeeded++
		return
	}
	e := event{val: -1, step: -1, kind: kind}
	var ok, hasDur bool
	e.ts, ok = parseMicros(raw.ts)
	e.dur, hasDur = parseMicros(raw.dur)
	if !ok || (!hasDur && raw.dur != nil) || e.dur < 0 {
		p.faults.badTime.hit(at)
		return
	}
	e.tid = lane(raw.tid)
	if kind == evLaunch {
		p.keepLaunch(&e, at)
		return
	}
	if p.t.stats.Kept >= int64(p.o.MaxEvents) {
		p.faults.overLimit.hit(at)
		return
	}
	p.dispatch(&e, at)
}

func (p *parser) dispatch(e *event, at int64) {
	t, raw := p.t, &p.event
	switch e.kind {
	case evKernel, evCopy:
		p.keepGPU(e, at)
		return
	case evStep:
		if n, ok := parseInt(raw.name[len("ProfilerStep#"):]); ok && n >= 0 {
			e.val = n
			t.stepMarks.add(*e)
			t.stats.Kept++
		}
		return
	case evHost:
		if !p.o.HostOps && p.outer.nested(e) {
			t.stats.Nested++
			return
		}
		e.name = p.names.id(raw.name, e.kind, at)
		t.host.add(*e)
	case evScope:
		e.name = p.names.id(raw.name, e.kind, at)
		t.ops.add(*e)
	case evGloo, evNCCLMark, evCommLaunch:
		p.keepMark(e, at)
	}
	p.pid()
	t.stats.Kept++
}

// keepGPU stores a kernel or copy.
func (p *parser) keepGPU(e *event, at int64) {
	t := p.t
	e.name = p.names.id(p.event.name, e.kind, at)
	a := p.scanArgs(p.event.args)
	e.ext, e.corr = uint32Or(a.ext), uint32Or(a.corr)
	if n, ok := parseInt(a.stream); ok {
		e.tid = n
	}
	switch {
	case e.kind == evCopy:
		e.val = intOr(a.bytes)
	case p.names.all[e.name].kern.comm:
		e.kind = evComm
		m, seq := p.metaOf(a, at)
		e.meta, e.val = p.meta(m, at), seq
	}
	if e.kind != evCopy {
		e.grid = p.texts.id(a.grid, at)
		p.onGPU()
	}
	t.ops.add(*e)
	t.stats.Kept++
}

// onGPU lets the host's operators go: what computes is the GPU.
func (p *parser) onGPU() {
	if p.gpu {
		return
	}
	p.gpu = true
	if p.o.HostOps {
		return
	}
	p.t.stats.NotNeeded += int64(p.t.host.n)
	p.t.stats.Kept -= int64(p.t.host.n)
	p.t.host.reset()
}

// keepLaunch stores a call of the GPU runtime that may have started something.
func (p *parser) keepLaunch(e *event, at int64) {
	api := p.names.all[p.names.id(p.event.name, evLaunch, at)].api
	corr := uint32(0)
	if api != apiNothing {
		corr = uint32Or(p.scanArgs(p.event.args).corr)
	}
	switch {
	case corr == 0:
		p.t.stats.NotNeeded++
	case p.t.stats.Kept >= int64(p.o.MaxEvents):
		p.faults.overLimit.hit(at)
	default:
		p.t.launches.add(launch{ts: e.ts, tid: e.tid, corr: corr, graph: api == apiGraph})
		p.t.stats.Kept++
	}
}

// keepMark stores an event of the host that speaks of a collective.
func (p *parser) keepMark(e *event, at int64) {
	a := p.scanArgs(p.event.args)
	m, seq := p.metaOf(a, at)
	e.ext, e.val = uint32Or(a.ext), seq
	if m.name == "" {
		m.name, m.local = markName(string(p.event.name[:min(len(p.event.name), kernelname.MaxBytes)]))
		if m.noSeq = m.name == nameSend || m.name == nameRecv; !m.noSeq {
			m.local = -1
		}
	}
	e.meta = p.meta(m, at)
	e.name = p.names.id(p.event.name, e.kind, at)
	switch e.kind {
	case evGloo:
		p.t.ops.add(*e)
	case evCommLaunch:
		p.outer.nested(e)
		p.t.commLaunches.add(*e)
	default:
		p.t.marks.add(*e)
	}
}

// meta numbers the arguments of a collective.
func (p *parser) meta(m meta, at int64) uint32 {
	if m == noMeta {
		return 0
	}
	if id, ok := p.metas[m]; ok {
		return id
	}
	if len(p.t.metas) > p.o.MaxStrings {
		p.faults.names.hit(at)
		return 0
	}
	id := uint32(len(p.t.metas))
	p.metas[m] = id
	p.t.metas = append(p.t.metas, m)
	return id
}

// pid takes the process from the first event of the host.
func (p *parser) pid() {
	if p.t.pid.OK || p.event.pid == nil {
		return
	}
	if n, ok := parseInt(p.event.pid); ok {
		p.t.pid = model.Some(n)
	}
}

// lane reads a thread or stream: a number, or a text that ends in one.
func lane(b []byte) int64 {
	if n, ok := parseInt(b); ok {
		return n
	}
	s := text(b)
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	n, _ := parseInt(s[i:])
	return n
}

// uint32Or returns the number, 0 where it is none or too big.
func uint32Or(b []byte) uint32 {
	if n, ok := parseInt(b); ok && n > 0 && n < 1<<32 {
		return uint32(n)
	}
	return 0
}

// outermost recognises operators that lie inside the last outermost one of their
// thread, as long as they come after it in the file. What it misses is found
// when the file is complete.
type outermost struct {
	last map[int64]span
}

type span struct{ start, end int64 }

// maxThreads bounds the threads that are watched.
const maxThreads = 4096

func (o *outermost) nested(e *event) bool {
	s, ok := o.last[e.tid]
	if ok && e.ts >= s.start && e.end() <= s.end {
		return true
	}
	if o.last == nil {
		o.last = map[int64]span{}
	}
	if ok || len(o.last) < maxThreads {
		o.last[e.tid] = span{e.ts, e.end()}
	}
	return false
}
