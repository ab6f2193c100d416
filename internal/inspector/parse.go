// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Versions are the formats that are read.
var Versions = []string{"v4.0", "v4.1", "v4.2", "v4.3", "v4.4"}

// lends are the formats in which a dump's header stands for the lines behind it.
var lends = []string{"v4.3", "v4.4"}

// What numbers can be.
const (
	maxRanks  = 1 << 24 // a hundred times the largest jobs
	maxPID    = 1 << 31
	maxBytes  = 1 << 50 // a pebibyte
	maxMicros = 24 * 3600e6
	maxGBs    = 1e6 // a hundred times what a link moves
	maxText   = 256 // bytes of a name
	// firstMicros and lastMicros are the years 2000 and 2100.
	firstMicros, lastMicros = 946684800e6, 4102444800e6
)

// counts are lines by kind.
type counts struct {
	Coll  int64 `json:"coll,omitempty"`
	P2P   int64 `json:"p2p,omitempty"`
	Proxy int64 `json:"proxy,omitempty"`
}

func (c *counts) of(k Kind) *int64 {
	switch k {
	case Collective:
		return &c.Coll
	case Message:
		return &c.P2P
	default:
		return &c.Proxy
	}
}

func (c *counts) sum() int64 { return c.Coll + c.P2P + c.Proxy }

// Context is what a dump lends to the lines behind it.
type Context struct {
	Comm   Comm   `json:"comm"`
	Source Source `json:"source"`
	Left   counts `json:"left"` // lines that are to come
}

// Parser reads the lines of one file in their order. Its zero value is the
// beginning of a file.
type Parser struct {
	// Context is nil where no dump lends one.
	Context *Context
	// Unknown is the version of a dump that is not known: what it lends is neither.
	Unknown string

	// Headers repeat from line to line.
	header rawComm
	rec    Record
	faults []*Fault
}

type rawComm struct {
	raw  []byte
	comm Comm
}

// Parse reads a line. The record is nil where nothing can be said of the line; it and
// the faults are valid until the next call.
func (p *Parser) Parse(l *Line) (*Record, []*Fault) {
	p.faults = p.faults[:0]
	if l.Gap > 0 {
		p.gap(l)
	}
	rec := p.parse(l)
	for _, f := range p.faults {
		f.Place = l.Place
	}
	return rec, p.faults
}

// gap forgets the context: what was cut out may have lent another.
func (p *Parser) gap(l *Line) {
	p.fault(fault(Gap, "find line: got %d bytes that were cut out of the file", l.Gap+int64(l.Torn)))
	p.Context, p.Unknown = nil, ""
}

func (p *Parser) fault(f *Fault) { p.faults = append(p.faults, f) }

func (p *Parser) parse(l *Line) *Record {
	if len(l.Text) == 0 {
		return nil
	}
	if l.TooLong {
		p.fault(fault(TooLong, "read line: got more than max_line_bytes, beginning %s", shown(l.Text)))
		p.miss(l.Text)
		return nil
	}
	var w wireLine
	if err := decode(l.Text, &w); err != nil {
		p.fault(fault(NotJSON, "decode line: got %s; want a JSON object: %v", shown(l.Text), err))
		p.miss(l.Text)
		return nil
	}
	kind := w.kind()
	if kind == "" {
		p.fault(fault(NotInspector, "find kind of line: got %s; want one of coll_perf, p2p_perf, dump_stats, proxy_trace", shown(l.Text)))
		return nil
	}
	p.rec = Record{Kind: kind}
	if f := p.origin(&w); f != nil {
		p.fault(f)
		return nil
	}
	if f := p.content(&w); f != nil {
		p.fault(f)
		return nil
	}
	return &p.rec
}

func (w *wireLine) kind() Kind {
	switch {
	case w.Dump != nil:
		return Dump
	case w.Coll != nil:
		return Collective
	case w.P2P != nil:
		return Message
	case len(w.Proxy) > 0:
		return Proxy
	}
	return ""
}

// miss takes note of a line that could not be read. Begun as lines behind a dump
// are, it was one of those; a dump would have lent another context.
func (p *Parser) miss(text []byte) {
	for _, k := range []Kind{Collective, Message, Proxy} {
		if bytes.HasPrefix(text, []byte(`{"`+string(k)+`"`)) {
			if p.Context != nil {
				n := p.Context.Left.of(k)
				*n = max(*n-1, 0)
			}
			return
		}
	}
	if bytes.HasPrefix(text, []byte(`{"header"`)) || bytes.Contains(text, []byte(`"`+string(Dump)+`"`)) {
		p.Context, p.Unknown = nil, ""
	}
}

// origin finds out whose line it is.
func (p *Parser) origin(w *wireLine) *Fault {
	if len(w.Header) == 0 && len(w.Metadata) == 0 && p.rec.Kind != Dump {
		return p.borrow()
	}
	if p.rec.Kind == Dump {
		p.endDump()
	}
	if f := p.metadata(w.Metadata); f != nil {
		return f
	}
	return p.comm(w.Header)
}

// borrow takes the context of the dump before.
func (p *Parser) borrow() *Fault {
	switch {
	case p.Unknown != "":
		return fault(UnknownVersion, "read line behind a dump: got version %s; want one of %s", shown(p.Unknown), strings.Join(Versions, ", "))
	case p.Context == nil:
		return fault(NoContext, "find header: got none, and no dump_stats line before that lends one; want either")
	}
	left := p.Context.Left.of(p.rec.Kind)
	if *left == 0 {
		return fault(NoContext, "find header: got none, and the dump before announced no further %s; want either", p.rec.Kind)
	}
	*left--
	p.rec.Comm, p.rec.Source = p.Context.Comm, p.Context.Source
	return nil
}

// endDump closes the dump before.
func (p *Parser) endDump() {
	if p.Context != nil && p.Context.Left.sum() > 0 {
		n := p.Context.Left.sum()
		f := fault(Short, "count lines of the dump before: got %d less than announced", n)
		f.Lines = n
		p.fault(f)
	}
	p.Context, p.Unknown = nil, ""
}

func (p *Parser) metadata(raw json.RawMessage) *Fault {
	var m wireMetadata
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return fault(BadHeader, "decode metadata: %v", err)
		}
	}
	if !slices.Contains(Versions, m.Version) {
		if p.rec.Kind == Dump {
			p.Unknown = "(none)"
			if m.Version != "" {
				p.Unknown = m.Version[:min(len(m.Version), maxText)]
			}
		}
		return fault(UnknownVersion, "check inspector_output_format_version: got %s; want one of %s", shown(m.Version), strings.Join(Versions, ", "))
	}
	s := &p.rec.Source
	pid, okPID := m.PID.whole(maxPID)
	dumped, okDumped := m.Dumped.whole(lastMicros)
	switch {
	case m.Hostname == "" || len(m.Hostname) > maxText:
		return fault(BadHeader, "check metadata.hostname: got %s; want 1 to %d bytes", shown(m.Hostname), maxText)
	case !okPID || pid == 0:
		return fault(BadHeader, "check metadata.pid: got %v; want 1 to %d", m.PID, maxPID)
	case !okDumped || dumped < firstMicros:
		return fault(BadHeader, "check metadata.dump_timestamp_us: got %v; want microseconds since 1970, of the years 2000 to 2100", m.Dumped)
	}
	*s = Source{Version: m.Version, Host: m.Hostname, PID: pid, Dumped: dumped * 1000}
	return nil
}

func (p *Parser) comm(raw json.RawMessage) *Fault {
	if len(raw) > 0 && bytes.Equal(raw, p.header.raw) {
		p.rec.Comm = p.header.comm
		return nil
	}
	var h wireHeader
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &h); err != nil {
			return fault(BadHeader, "decode header: %v", err)
		}
	}
	c := &p.rec.Comm
	id, okID := commID(h.ID)
	ranks, okRanks := h.Ranks.whole(maxRanks)
	rank, okRank := h.Rank.whole(maxRanks)
	switch {
	case !okID:
		return fault(BadHeader, "check header.id: got %s; want 0x and up to 16 hexadecimal digits, not 0", shown(h.ID))
	case !okRanks || ranks == 0:
		return fault(BadHeader, "check header.n_ranks: got %v; want 1 to %d", h.Ranks, maxRanks)
	case !okRank || rank >= ranks:
		return fault(BadHeader, "check header.rank: got %v; want 0 to %d", h.Rank, ranks-1)
	case len(h.Name) > maxText:
		return fault(BadHeader, "check header.comm_name: got %d bytes; want at most %d", len(h.Name), maxText)
	}
	*c = Comm{ID: id, Name: h.Name, Rank: rank, Ranks: ranks}
	if c.Name == unknown {
		c.Name = ""
	}
	c.Nodes, _ = h.NNodes.whole(maxRanks)
	p.header = rawComm{append(p.header.raw[:0], raw...), *c}
	return nil
}

// unknown is what Inspector writes for want of a name.
const unknown = "unknown"

// commID is NCCL's hash in the data model's form. Inspector writes it without
// leading zeros.
func commID(s string) (string, bool) {
	hex, ok := strings.CutPrefix(s, "0x")
	n, err := strconv.ParseUint(hex, 16, 64)
	if !ok || err != nil || n == 0 {
		return "", false
	}
	return fmt.Sprintf("0x%016x", n), true
}

func (p *Parser) content(w *wireLine) *Fault {
	switch p.rec.Kind {
	case Collective:
		return p.collective(w.Coll)
	case Message:
		return p.message(w.P2P)
	case Dump:
		return p.dump(w.Dump)
	}
	return nil
}

func (p *Parser) collective(c *wireColl) *Fault {
	r := &p.rec
	if f := p.measure(c.Name, c.Timing, "coll", c.Seq, c.Bytes, c.Took, c.Bus); f != nil {
		return f
	}
	r.Algo, r.Proto = label(c.Algo), label(c.Proto)
	if c.Trace != nil {
		p.times(c.Trace.CollStart, c.Trace.Kernels)
	}
	return nil
}

func (p *Parser) message(m *wireP2P) *Fault {
	r := &p.rec
	if f := p.measure(m.Name, m.Timing, "p2p", m.Seq, m.Bytes, m.Took, m.Bus); f != nil {
		return f
	}
	if r.Name != model.OpSend && r.Name != model.OpRecv {
		return fault(BadValue, "check p2p: got %s; want Send or Recv", shown(m.Name))
	}
	peer, ok := m.Peer.whole(float64(r.Comm.Ranks - 1))
	if !ok {
		return fault(BadValue, "check p2p_peer: got %v; want 0 to %d", m.Peer, r.Comm.Ranks-1)
	}
	r.Peer = model.Some(peer)
	if m.Trace != nil {
		p.times(m.Trace.P2PStart, m.Trace.Kernels)
	}
	return nil
}

// measure reads what collectives and messages have in common.
func (p *Parser) measure(name, timing, prefix string, seq, size, took, bus number) *Fault {
	r := &p.rec
	var okSeq, okBytes, okTook bool
	r.Seq, okSeq = seq.whole(exact)
	r.Bytes, okBytes = size.whole(maxBytes)
	micros, okTook := took.within(maxMicros)
	switch {
	case name == "" || len(name) > maxText:
		return fault(BadValue, "check %s: got %s; want 1 to %d bytes", prefix, shown(name), maxText)
	case !okSeq:
		return fault(BadValue, "check %s_sn: got %v; want an integer from 0 to 2^53", prefix, seq)
	case !okBytes:
		return fault(BadValue, "check %s_msg_size_bytes: got %v; want an integer from 0 to 2^50", prefix, size)
	case !okTook:
		return fault(BadValue, "check %s_exec_time_us: got %v; want 0 to 24 hours", prefix, took)
	}
	r.Name, r.Seconds, r.Timing = model.NCCLFunction(name), micros*1e-6, label(timing)
	if gbs, ok := bus.within(maxGBs); ok {
		r.BusRate = model.Some(gbs * 1e9)
	} else if bus.there {
		p.fault(fault(BadRate, "check %s_busbw_gbs: got %v; want 0 to %v", prefix, bus, maxGBs))
	}
	return nil
}

// label is a short text; what Inspector does not know, and what is too long to be
// one, is empty.
func label(s string) string {
	if s == unknown || len(s) > maxText {
		return ""
	}
	return s
}

// times reads the host's stamps: when the operation was enqueued, when the host saw
// the first channel start, and the last one stop. Channels that the writer did not
// see are 0.
func (p *Parser) times(launch number, kernels []wireKernel) {
	var start, end int64
	bad := false
	for i := range kernels {
		from, okFrom := stamp(kernels[i].Start)
		to, okTo := stamp(kernels[i].Stop)
		bad = bad || !okFrom || !okTo
		if from > 0 && (start == 0 || from < start) {
			start = from
		}
		end = max(end, to)
	}
	begun, okLaunch := stamp(launch)
	switch {
	case bad || !okLaunch:
		p.fault(fault(BadTime, "check event_trace_ts: got a stamp out of range; want 0, or microseconds since 1970, of the years 2000 to 2100"))
	case begun == 0 || start == 0 || end == 0:
		p.fault(fault(BadTime, "check event_trace_ts: got no enqueueing, or no channel's start or stop; want all three"))
	case start < begun || end < start || end-begun > maxMicros*1000:
		p.fault(fault(BadTime, "check event_trace_ts: got enqueueing %d, start %d, end %d (us); want them in this order, within 24 hours", begun/1000, start/1000, end/1000))
	default:
		p.rec.Launch, p.rec.Start, p.rec.End, p.rec.Channels = begun, start, end, int64(len(kernels))
	}
}

// stamp returns Unix ns; 0 where there is none.
func stamp(n number) (int64, bool) {
	us, ok := n.whole(lastMicros)
	if !n.there || (ok && us == 0) {
		return 0, true
	}
	return us * 1000, ok && us >= firstMicros
}

// dump reads what was dropped, and lends its header where lines behind it have none.
func (p *Parser) dump(d *wireDump) *Fault {
	r := &p.rec
	if f := p.losses(d); f != nil {
		return f
	}
	if !slices.Contains(lends, r.Source.Version) {
		return nil
	}
	var c counts
	for _, n := range []struct {
		name string
		got  number
		to   *int64
	}{{"coll_records", d.Coll, &c.Coll}, {"p2p_records", d.P2P, &c.P2P}, {"proxy_records", d.Proxy, &c.Proxy}} {
		v, ok := n.got.whole(exact)
		if n.got.there && !ok || !n.got.there && n.to != &c.Proxy {
			return fault(BadValue, "check dump_stats.%s: got %v; want an integer from 0 to 2^53", n.name, n.got)
		}
		*n.to = v
	}
	p.Context = &Context{Comm: r.Comm, Source: r.Source, Left: c}
	return nil
}

func (p *Parser) losses(d *wireDump) *Fault {
	for _, n := range []struct {
		reason string
		got    number
	}{{"coll_ring", d.CollLost}, {"p2p_ring", d.P2PLost}, {"proxy_ring", d.ProxyLost}, {"proxy_pool", d.ProxyOpsLost}} {
		v, ok := n.got.whole(exact)
		if n.got.there && !ok {
			return fault(BadValue, "check dump_stats: got %v dropped (%s); want an integer from 0 to 2^53", n.got, n.reason)
		}
		if v > 0 {
			p.rec.Lost = append(p.rec.Lost, Loss{n.reason, v})
		}
	}
	return nil
}
