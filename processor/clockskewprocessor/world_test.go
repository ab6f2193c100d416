// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// world is a cluster with known true times: each span is stamped by the clock of
// its host, which has an offset and a drift.
type world struct {
	rand  *rand.Rand
	hosts []hostClock
	// floor and jitter are the one-way delay, ns: never less than the floor, the rest
	// exponential.
	floor, jitter float64
	spans         []*trueSpan
	ids           uint64
	kernels       int // of a rank in a step; 0 is 1
	// probed: packets measure the clocks, too.
	probed bool
	// together: all hosts export in one batch.
	together bool
	// shuffled: hosts export in any order.
	shuffled bool
}

// hostClock shows true + offset + drift*(true-base), and by more from when it is set on.
type hostClock struct {
	offset int64
	drift  float64
	set    int64 // true time; 0 never
	by     int64
}

func (h hostClock) shows(at int64) int64 {
	shown := at + h.offset + int64(math.Round(h.drift*float64(at-base)))
	if h.set != 0 && at >= h.set {
		shown += h.by
	}
	return shown
}

// trueSpan is a span and when it truly was.
type trueSpan struct {
	host              int
	trace, id, parent uint64
	links             []uint64 // in the same trace
	kind              ptrace.SpanKind
	attrs             map[string]any
	failed            bool
	begin, end        int64 // true
	// late is by how much the stamp of the start is late.
	late int64
	// async: it may end after its parent.
	async bool
	// op: an operation of a rank.
	op bool
}

func newWorld(seed uint64, hosts int, offset, ppm float64) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 7)), floor: 200e3, jitter: 100e3}
	for range hosts {
		w.hosts = append(w.hosts, hostClock{
			offset: int64((2*w.rand.Float64() - 1) * offset), drift: (2*w.rand.Float64() - 1) * ppm * 1e-6,
		})
	}
	return w
}

func (w *world) delay() int64 { return int64(w.floor + w.rand.ExpFloat64()*w.jitter) }

func (w *world) work() int64 { return int64(50e3 + w.rand.ExpFloat64()*300e3) }

func (w *world) other(host int) int { return (host + 1 + w.rand.IntN(len(w.hosts)-1)) % len(w.hosts) }

func (w *world) add(s trueSpan) *trueSpan {
	w.ids++
	s.id = w.ids
	w.spans = append(w.spans, &s)
	return w.spans[len(w.spans)-1]
}

var (
	rpcAttrs     = map[string]any{"rpc.system": "grpc"}
	streamAttrs  = map[string]any{"http.request.method": "GET", "network.protocol.name": "websocket"}
	sendAttrs    = map[string]any{"messaging.system": "kafka", "messaging.operation.type": "send"}
	processAttrs = map[string]any{"messaging.system": "kafka", "messaging.operation.type": "process"}
	receiveAttrs = map[string]any{"messaging.system": "kafka", "messaging.operation.type": "receive"}
)

// request is one trace of microservices: calls that nest, an internal span, a
// message that is processed later, a poll of it, a stream that outlives its caller,
// a call that was given up.
func (w *world) request(trace uint64, at int64) {
	root := w.add(trueSpan{host: w.rand.IntN(len(w.hosts)), trace: trace, kind: ptrace.SpanKindServer, attrs: rpcAttrs, begin: at})
	now := at + w.work()
	inner := w.add(trueSpan{host: root.host, trace: trace, parent: root.id, begin: now, end: now + w.work()})
	now = inner.end
	for range 1 + w.rand.IntN(3) {
		now = w.call(root, now, 2) + w.work()
	}
	switch w.rand.IntN(4) {
	case 0:
		w.message(root, now)
	case 1:
		w.stream(root, now)
	case 2:
		w.giveUp(root, now)
	}
	root.end = now + w.work()
}

// call returns when the caller has its answer.
func (w *world) call(from *trueSpan, at int64, depth int) int64 {
	client := w.add(trueSpan{host: from.host, trace: from.trace, parent: from.id, kind: ptrace.SpanKindClient, attrs: rpcAttrs, begin: at})
	server := w.add(trueSpan{host: w.other(from.host), trace: from.trace, parent: client.id, kind: ptrace.SpanKindServer, attrs: rpcAttrs, begin: at + w.delay()})
	now := server.begin + w.work()
	if depth > 1 && w.rand.IntN(2) == 0 {
		now = w.call(server, now, depth-1) + w.work()
	}
	server.end = now
	client.end = now + w.delay()
	return client.end
}

func (w *world) message(from *trueSpan, at int64) {
	send := w.add(trueSpan{host: from.host, trace: from.trace, parent: from.id, kind: ptrace.SpanKindProducer, attrs: sendAttrs, begin: at, end: at + 20e3})
	taker := w.other(from.host)
	arrived := at + w.delay()
	w.add(trueSpan{
		host: taker, trace: from.trace, links: []uint64{send.id}, kind: ptrace.SpanKindConsumer, attrs: receiveAttrs,
		begin: at - int64(w.rand.Float64()*1e9), end: arrived + 10e3,
	})
	w.add(trueSpan{
		host: taker, trace: from.trace, parent: send.id, kind: ptrace.SpanKindConsumer, attrs: processAttrs, async: true,
		begin: arrived + 20e3, end: arrived + 20e3 + 5*w.work(),
	})
}

func (w *world) stream(from *trueSpan, at int64) {
	client := w.add(trueSpan{host: from.host, trace: from.trace, parent: from.id, kind: ptrace.SpanKindClient, attrs: streamAttrs, begin: at, end: at + w.work()})
	begin := at + w.delay()
	w.add(trueSpan{
		host: w.other(from.host), trace: from.trace, parent: client.id, kind: ptrace.SpanKindServer, attrs: streamAttrs, async: true,
		begin: begin, end: begin + 20*w.work(),
	})
}

func (w *world) giveUp(from *trueSpan, at int64) {
	client := w.add(trueSpan{
		host: from.host, trace: from.trace, parent: from.id, kind: ptrace.SpanKindClient, attrs: rpcAttrs, begin: at, end: at + 500e3, failed: true,
	})
	begin := at + w.delay()
	w.add(trueSpan{
		host: w.other(from.host), trace: from.trace, parent: client.id, kind: ptrace.SpanKindServer, attrs: rpcAttrs, async: true,
		begin: begin, end: client.end + 3*w.work(),
	})
}

// step is one training step: each rank computes, and all meet in an all_reduce.
func (w *world) step(n uint64, at int64) (end int64) {
	enter := make([]int64, len(w.hosts))
	for r := range enter {
		enter[r] = at + int64(1e6+w.rand.ExpFloat64()*2e6)
	}
	last := slices.Max(enter)
	for r := range enter {
		leave := last + w.delay()
		end = max(end, leave)
		for k := range max(1, w.kernels) {
			w.add(trueSpan{
				host: r, trace: n, attrs: map[string]any{semconv.OpKind: "compute"}, op: true,
				begin: at + int64(k)*10e3, end: at + int64(k+1)*10e3,
			})
		}
		w.add(trueSpan{host: r, trace: n, op: true, begin: enter[r], end: leave, attrs: map[string]any{
			semconv.OpKind: "collective", semconv.CommID: "0xc", semconv.CollectiveName: "all_reduce", semconv.CollectiveSeq: int64(n),
			semconv.CollectiveSeqScope: "comm_func", semconv.CollectiveState: "completed",
		}})
	}
	return end
}

// batches are what the hosts' exporters send: the spans of each host that ended in
// each interval, in order of their ends.
func (w *world) batches(every int64) (out []ptrace.Traces) {
	type part struct {
		interval int64
		host     int
	}
	parts := map[part][]*trueSpan{}
	var order []part
	slices.SortStableFunc(w.spans, func(a, b *trueSpan) int { return cmp.Compare(a.end, b.end) })
	for _, s := range w.spans {
		p := part{(s.end - base) / every, s.host}
		if parts[p] == nil {
			order = append(order, p)
		}
		parts[p] = append(parts[p], s)
	}
	slices.SortFunc(order, func(a, b part) int { return cmp.Or(cmp.Compare(a.interval, b.interval), cmp.Compare(a.host, b.host)) })
	if w.shuffled {
		rank := w.rand.Perm(len(order))
		at := map[part]int{}
		for i, p := range order {
			at[p] = rank[i]
		}
		slices.SortFunc(order, func(a, b part) int { return cmp.Or(cmp.Compare(a.interval, b.interval), cmp.Compare(at[a], at[b])) })
	}
	for i, p := range order {
		td := w.export(p.host, parts[p])
		if w.together && i > 0 && order[i-1].interval == p.interval {
			td.ResourceSpans().MoveAndAppendTo(out[len(out)-1].ResourceSpans())
			continue
		}
		out = append(out, td)
	}
	return out
}

func (w *world) export(host int, spans []*trueSpan) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	res := rs.Resource().Attributes()
	res.PutStr(semconv.ServiceName, "shop")
	res.PutStr(semconv.HostID, fmt.Sprintf("h%d", host))
	if spans[0].op {
		res.PutInt(semconv.Rank, int64(host))
		res.PutStr(semconv.JobID, "job")
		res.PutStr(semconv.JobIncarnation, "inc")
	}
	out := rs.ScopeSpans().AppendEmpty().Spans()
	for _, s := range spans {
		w.write(s, out.AppendEmpty())
	}
	return td
}

func (w *world) write(s *trueSpan, out ptrace.Span) {
	out.SetTraceID(traceID(s.trace))
	out.SetSpanID(spanID(s.id))
	if s.parent != 0 {
		out.SetParentSpanID(spanID(s.parent))
	}
	for _, l := range s.links {
		link := out.Links().AppendEmpty()
		link.SetTraceID(traceID(s.trace))
		link.SetSpanID(spanID(l))
	}
	out.SetKind(s.kind)
	if s.failed {
		out.Status().SetCode(ptrace.StatusCodeError)
	}
	_ = out.Attributes().FromRaw(s.attrs)
	out.SetStartTimestamp(pcommon.Timestamp(w.hosts[s.host].shows(s.begin + s.late)))
	out.SetEndTimestamp(pcommon.Timestamp(w.hosts[s.host].shows(s.end)))
	out.Events().AppendEmpty().SetTimestamp(pcommon.Timestamp(w.hosts[s.host].shows((s.begin + s.end) / 2)))
}

func traceID(n uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:], n*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func spanID(n uint64) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}
