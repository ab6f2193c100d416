// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// two are a span on clock a, and one on clock b that names it.
type two struct {
	first, second Trait
	via           Via
}

// rows returns the relations that an engine finds between two spans.
func (c two) rows(t *testing.T) (names []string) {
	t.Helper()
	e := New(testConfig(), &fakeClocks{})
	named := Span{Ref: model.SpanRef{Trace: traceID(1), Span: spanID(1)}, Is: c.first, Clock: e.Clock("a"), Begin: base, Until: base + 1000}
	by := Span{Ref: model.SpanRef{Trace: traceID(1), Span: spanID(2)}, Is: c.second, Clock: e.Clock("b"), Begin: base + 10, Until: base + 500}
	if c.via == ViaLink {
		by.Ref.Trace = traceID(2)
		by.Links = []model.SpanRef{named.Ref}
	} else {
		by.Parent = named.Ref.Span
	}
	e.match(&Batch{Spans: []Span{by, named}})
	for _, p := range e.pairs {
		names = append(names, p.row.Name)
	}
	return names
}

// TestTable asks of each row whether it is found where it holds, and only there.
func TestTable(t *testing.T) {
	const (
		starts   = "child_starts_after_parent"
		ends     = "call_ends_after_its_server"
		http     = "http_ends_after_its_server"
		receives = "receive_ends_after_send_begins"
		process  = "process_starts_after_send_begins"
	)
	for name, c := range map[string]struct {
		two
		want []string
	}{
		"a child starts after its parent":                   {two{0, 0, ViaParent}, []string{starts}},
		"also where it failed":                              {two{0, Failed, ViaParent}, []string{starts}},
		"an asynchronous child ends when it likes":          {two{Client | Call, Consumer | Process | Messaging, ViaParent}, []string{starts}},
		"nobody says that an internal child was waited for": {two{Server | Call, 0, ViaParent}, []string{starts}},
		"a call ends after its server":                      {two{Client | Call, Server | Call, ViaParent}, []string{starts, ends}},
		"a client without attributes":                       {two{Client, Server | Call, ViaParent}, []string{starts, ends}},
		"an HTTP client may end with the headers":           {two{Client | HTTP, Server | HTTP, ViaParent}, []string{starts, http}},
		"whatever serves it":                                {two{Client | HTTP, Server | Call, ViaParent}, []string{starts, http}},
		"an HTTP server":                                    {two{Client, Server | HTTP, ViaParent}, []string{starts, http}},
		"called by who knows of a procedure":                {two{Client | Call, Server | HTTP, ViaParent}, []string{starts, http}},
		"an HTTP stream ends when either side likes":        {two{Client | HTTP, Server | HTTP | Streaming, ViaParent}, []string{starts}},
		"a server that is no call":                          {two{Client | Call, Server, ViaParent}, []string{starts}},
		"a server under an internal span":                   {two{0, Server | Call, ViaParent}, []string{starts}},
		"a stream ends when either side likes":              {two{Client | Call, Server | Call | Streaming, ViaParent}, []string{starts}},
		"of which the client knows":                         {two{Client | Call | Streaming, Server | Call, ViaParent}, []string{starts}},
		"a client that gave up did not wait":                {two{Client | Call | Failed, Server | Call, ViaParent}, []string{starts}},
		"a server that failed may have been given up":       {two{Client | Call, Server | Call | Failed, ViaParent}, []string{starts}},
		"a call over a broker is answered at once":          {two{Client | Call, Server | Call | Messaging, ViaParent}, []string{starts}},
		"a poll begins before there is anything":            {two{Producer, Consumer | Receive, ViaParent}, []string{receives}},
		"a poll of nothing that was sent":                   {two{0, Consumer | Receive, ViaParent}, nil},
		"who sends need not be a producer":                  {two{Client | Messaging | Send, Client | Messaging | Receive, ViaParent}, []string{receives}},
		"what is processed was sent":                        {two{Producer, Consumer | Process, ViaParent}, []string{starts}},
		"a poll that is linked":                             {two{Producer, Consumer | Receive, ViaLink}, []string{receives}},
		"processing that is linked":                         {two{Producer, Consumer | Process, ViaLink}, []string{process}},
		"a link says nothing by itself":                     {two{0, 0, ViaLink}, nil},
		"nor between calls":                                 {two{Client | Call, Server | Call, ViaLink}, nil},
		"nor from a consumer to no producer":                {two{Server, Consumer | Process, ViaLink}, nil},
		"a page's load began before its page was rendered":  {two{Server | HTTP, Afterwards, ViaParent}, nil},
		"what it loads begins after it":                     {two{Afterwards, Client | HTTP, ViaParent}, []string{starts}},
		"a poll that is linked to no send":                  {two{Server | Call, Consumer | Receive, ViaLink}, nil},
		"nor an operation, whatever names it":               {two{Operation | Send, Consumer | Receive, ViaLink}, nil},
		"nor one that processes":                            {two{Operation | Send, Consumer | Process, ViaLink}, nil},
		"a rank's operation polls nobody":                   {two{Producer, Operation | Receive, ViaParent}, nil},
		"an HTTP client that gave up":                       {two{Client | HTTP | Failed, Server | HTTP, ViaParent}, []string{starts}},
		"an HTTP server that was given up":                  {two{Client | HTTP, Server | HTTP | Failed, ViaParent}, []string{starts}},
		"whoever knows of HTTP":                             {two{Client, Server | HTTP | Failed, ViaParent}, []string{starts}},
		"operations of a rank are in their step":            {two{Operation, Operation, ViaParent}, nil},
		"a step under a request":                            {two{Server | Call, Operation, ViaParent}, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.ElementsMatch(t, c.want, c.rows(t)) })
	}
}

// TestABatchOfMessages: the spans that a poll is linked to each bound its end.
func TestABatchOfMessages(t *testing.T) {
	e := New(testConfig(), &fakeClocks{})
	poll := Span{Ref: model.SpanRef{Trace: traceID(9), Span: spanID(9)}, Is: Consumer | Receive, Clock: e.Clock("b"), Begin: base, Until: base + 500}
	b := &Batch{}
	for n := range uint64(5) {
		send := Span{Ref: model.SpanRef{Trace: traceID(n), Span: spanID(n)}, Is: Producer, Clock: e.Clock("a"), Begin: base + int64(n), Until: base + int64(n) + 1}
		poll.Links = append(poll.Links, send.Ref)
		b.Spans = append(b.Spans, send)
	}
	b.Spans = append(b.Spans, poll)
	e.match(b)
	require.Len(t, e.pairs, 5)
	for _, p := range e.pairs {
		assert.Equal(t, []End{Start, Finish}, []End{p.row.From, p.row.To})
		assert.Equal(t, poll.Ref, p.second.Ref)
	}
}

// member is rank's part in a collective of three, root 1.
func member(kind model.OpKind, name string, rank int64, peer int64) (*model.Rank, *model.Op) {
	return &model.Rank{Incarnation: "i", Rank: rank}, &model.Op{
		Kind: kind, Comm: model.Comm{ID: "0xc", Rank: model.Some(rank)}, Peer: model.Some(peer),
		Collective: model.Collective{Name: name, Seq: model.Some(int64(7)), SeqScope: model.ScopeCommFunc, Root: model.Some(int64(1))},
	}
}

// TestMeetings lists, for three ranks on three clocks, whose start is before whose
// end.
func TestMeetings(t *testing.T) {
	everyOther := []string{"0<1", "0<2", "1<0", "1<2", "2<0", "2<1"}
	for name, want := range map[string][]string{
		model.AllReduce: everyOther, model.AllGather: everyOther, model.ReduceScatter: everyOther, model.Barrier: everyOther,
		model.Broadcast: {"1<0", "1<2"}, "scatter": {"1<0", "1<2"},
		model.Reduce: {"0<1", "2<1"}, "gather": {"0<1", "2<1"},
		model.AllToAll: nil, model.SendRecv: nil, "other": nil,
	} {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, want, meetingPairs(t, func(rank int64) (*model.Rank, *model.Op) {
				return member(model.KindCollective, name, rank, 0)
			}))
		})
	}
	t.Run("message", func(t *testing.T) {
		assert.ElementsMatch(t, []string{"0<2"}, meetingPairs(t, func(rank int64) (*model.Rank, *model.Op) {
			switch rank {
			case 0:
				return member(model.KindSend, model.OpSend, 0, 2)
			case 2:
				return member(model.KindRecv, model.OpRecv, 2, 0)
			}
			return member(model.KindSend, model.OpSend, 1, 0)
		}))
	})
	for name, change := range map[string]func(*model.Op){
		"unknown root":                 func(o *model.Op) { o.Collective.Name, o.Collective.Root = model.Broadcast, model.Optional[int64]{} },
		"unknown rank":                 func(o *model.Op) { o.Collective.Name, o.Comm.Rank = model.Broadcast, model.Optional[int64]{} },
		"a number that nobody shares":  func(o *model.Op) { o.Collective.SeqScope = model.ScopeProcess },
		"a number that a reader chose": func(o *model.Op) { o.Collective.SeqScope = model.ScopeOrdinal },
		"no number":                    func(o *model.Op) { o.Collective.Seq = model.Optional[int64]{} },
		"ends that nobody saw":         func(o *model.Op) { o.EndInferred = true },
		"never completed":              func(o *model.Op) { o.Collective.State = "started" },
		"groups of one name": func(o *model.Op) {
			o.Comm.Digest = string(rune('a' + o.Comm.Rank.V))
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, meetingPairs(t, func(rank int64) (*model.Rank, *model.Op) {
				r, op := member(model.KindCollective, model.AllReduce, rank, 0)
				change(op)
				return r, op
			}))
		})
	}
}

func meetingPairs(t *testing.T, of func(rank int64) (*model.Rank, *model.Op)) (pairs []string) {
	t.Helper()
	e := New(testConfig(), &fakeClocks{})
	names := map[model.SpanID]string{}
	for rank := range int64(3) { // each in a batch of its own, as ranks deliver
		r, op := of(rank)
		s := Span{
			Ref: model.SpanRef{Trace: traceID(1), Span: spanID(uint64(rank))}, Is: Operation, Meet: MeetOf(r, op),
			Clock: e.Clock("rank" + string(rune('0'+rank))), Begin: base + rank, Until: base + 1000 + rank,
		}
		names[s.Ref.Span] = string(rune('0' + rank))
		e.batch++
		e.meetings.number = e.batch
		e.match(&Batch{Spans: []Span{s}})
		for _, p := range e.pairs {
			assert.Equal(t, []End{Start, Finish}, []End{p.row.From, p.row.To})
			pairs = append(pairs, names[p.first.Ref.Span]+"<"+names[p.second.Ref.Span])
		}
		e.forget()
	}
	return pairs
}

// TestTableIsComplete: a row without a test would be a claim without a proof.
func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table {
		seen[r.Name] = true
		assert.Equal(t, r.Usual, r.Source == "", "what is not promised is no evidence")
	}
	assert.Len(t, seen, 9, "TestTable and TestMeetings know nine relations by name")
}

// TestHTTPClientsEndWithTheHeaders: six hosts with perfect clocks. A server's span ends
// with the body of the answer, 50 ms after its client's: nobody is accused, no clock is
// moved for it, and procedure calls of the same two hosts still tell of them.
func TestHTTPClientsEndWithTheHeaders(t *testing.T) {
	for _, known := range []map[string]fakeClock{{"a": {bound: 1000}, "b": {bound: 1000}}, {"a": {bound: 1000}, "b": {offset: -60e6, bound: 1000}}, {}} {
		f := &fakeClocks{of: known}
		e := New(testConfig(), f)
		for n := range int64(100) {
			b := call(e, 100e6, -50e6)
			for i := range b.Spans {
				s := &b.Spans[i]
				s.Is = s.Is&^Call | HTTP
				s.Ref.Trace = traceID(uint64(2 * n))
				s.Begin, s.Until = s.Begin+n*100e6, s.Until+n*100e6
			}
			e.Run(b)
			require.Equal(t, []Class{Undecided}, classesOf(b))
			require.NotContains(t, states(b), Withheld)
		}
		require.EqualValues(t, 100, e.Stats().Evidence.Samples, "the starts alone")
		for n := range int64(100) {
			b := call(e, 100e3, 100e3)
			for i := range b.Spans {
				s := &b.Spans[i]
				s.Ref.Trace = traceID(uint64(2*n + 1))
				s.Begin, s.Until = s.Begin+(100+n)*100e6, s.Until+(100+n)*100e6
			}
			e.Run(b)
		}
		both := 0
		for _, edge := range f.edges {
			if edge.Lower != model.NoLower && edge.Upper != model.NoUpper {
				both++
				assert.LessOrEqual(t, edge.Lower, int64(0))
				assert.GreaterOrEqual(t, edge.Upper, int64(0))
			}
		}
		assert.Positive(t, both)
	}
}
