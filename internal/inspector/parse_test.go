// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	headerA = `"header":{"id":"0x5d11a2b7c3e9f","rank":1,"n_ranks":4,"nnodes":2}`
	headerB = `"header":{"id":"0x00feedfacecafe01","comm_name":"TP Group 0","rank":0,"n_ranks":2,"nnodes":1}`
)

func metadata(version string) string {
	return `"metadata":{"inspector_output_format_version":"` + version + `","git_rev":"","rec_mechanism":"nccl_profiler_interface",` +
		`"dump_timestamp_us":1790000000000000,"hostname":"node-7","pid":4711}`
}

// line is one with header and metadata.
func line(version, header, rest string) string {
	return "{" + header + "," + metadata(version) + "," + rest + "}"
}

// reduce is the body of an all_reduce as all versions write it.
func reduce(seq string) string {
	return `"coll_perf":{"coll":"AllReduce","coll_sn":` + seq + `,"coll_msg_size_bytes":1000000,"coll_exec_time_us":500,` +
		`"coll_timing_source":"kernel_gpu","coll_algobw_gbs":2.000000,"coll_busbw_gbs":3.000000}`
}

// read parses a text of lines.
func read(p *Parser, text string) (recs []Record, reasons []Reason) {
	s := NewSplitter(1<<16, SplitState{})
	s.Feed([]byte(text), func(l Line) {
		r, faults := p.Parse(&l)
		if r != nil {
			recs = append(recs, *r)
		}
		for _, f := range faults {
			reasons = append(reasons, f.Reason)
		}
	})
	return recs, reasons
}

func one(t *testing.T, text string) Record {
	t.Helper()
	recs, reasons := read(&Parser{}, text+"\n")
	require.Empty(t, reasons)
	require.Len(t, recs, 1)
	return recs[0]
}

func TestCollective(t *testing.T) {
	r := one(t, line("v4.0", headerA, reduce("17")))
	assert.Equal(t, Record{
		Kind:   Collective,
		Comm:   Comm{ID: "0x0005d11a2b7c3e9f", Rank: 1, Ranks: 4, Nodes: 2},
		Source: Source{Version: "v4.0", Host: "node-7", PID: 4711, Dumped: 1790000000000000000},
		Name:   model.AllReduce, Seq: 17, Bytes: 1000000, Seconds: 500e-6, Timing: "kernel_gpu", BusRate: model.Some(3e9),
	}, r)
}

// A line as it was captured from a job: its durations have fractions.
func TestFractionsOfMicroseconds(t *testing.T) {
	r := one(t, `{"header":{"id":"0x9a41c7","rank":2,"n_ranks":3,"nnodes":3},"metadata":{"inspector_output_format_version":"v4.0",`+
		`"git_rev":"standalone-build","hostname":"worker-2","pid":48,"dump_timestamp_us":1772585717263338},"coll_perf":{"coll":"AllReduce",`+
		`"coll_sn":12,"coll_msg_size_bytes":2360832,"coll_exec_time_us":5663.5,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":0.416887,"coll_busbw_gbs":0.555850}}`)
	assert.InDelta(t, 5663.5e-6, r.Seconds, 1e-12)
	assert.InDelta(t, 555850e3, r.BusRate.V, 1e-3)
}

func TestAlgorithmAndName(t *testing.T) {
	body := strings.Replace(reduce("3"), `"coll_sn"`, `"coll_algo":"RING","coll_proto":"LL128","coll_sn"`, 1)
	r := one(t, line("v4.2", headerB, body))
	assert.Equal(t, []string{"RING", "LL128", "TP Group 0", "0x00feedfacecafe01"}, []string{r.Algo, r.Proto, r.Comm.Name, r.Comm.ID})
	r = one(t, line("v4.2", strings.Replace(headerB, "TP Group 0", "unknown", 1), strings.Replace(body, "RING", "unknown", 1)))
	assert.Empty(t, r.Comm.Name+r.Algo, "the writer's word for what it does not know")
}

const p2p = `"p2p_perf":{"p2p":"Send","p2p_sn":5,"p2p_peer":3,"p2p_msg_size_bytes":8192,"p2p_exec_time_us":40,"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":0.2,"p2p_busbw_gbs":0.2}`

func TestMessage(t *testing.T) {
	r := one(t, line("v4.0", headerA, p2p))
	assert.Equal(t, Message, r.Kind)
	assert.Equal(t, "send", r.Name)
	assert.Equal(t, model.Some(int64(3)), r.Peer)
	_, reasons := read(&Parser{}, line("v4.0", headerA, strings.Replace(p2p, `"p2p_peer":3`, `"p2p_peer":4`, 1))+"\n")
	assert.Equal(t, []Reason{BadValue}, reasons)
}

func verbose(launch, starts, stops string) string {
	var channels []string
	to := strings.Split(stops, ",")
	for i, from := range strings.Split(starts, ",") {
		channels = append(channels, `{"channel_id":0,"kernel_start_ts":`+from+`,"kernel_stop_ts":`+to[i]+`,"kernel_record_ts":`+to[i]+`}`)
	}
	return strings.TrimSuffix(reduce("0"), "}") + `,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[]},` +
		`"event_trace_ts":{"coll_start_ts":` + launch + `,"coll_stop_ts":` + launch + `,"kernel_events":[` + strings.Join(channels, ",") + `]}}`
}

func TestEventTraces(t *testing.T) {
	const s = "17900000000000"
	r := one(t, line("v4.0", headerA, verbose(s+"10", s+"25,"+s+"20,0", s+"70,"+s+"90,0")))
	assert.Equal(t, int64(1790000000000010000), r.Launch)
	assert.Equal(t, int64(1790000000000020000), r.Start, "the first channel that was seen to start")
	assert.Equal(t, int64(1790000000000090000), r.End, "the last that was seen to stop")
	assert.Equal(t, int64(3), r.Channels)
	for name, body := range map[string]string{
		"ends before it starts": verbose(s+"10", s+"25", s+"24"),
		"starts before launch":  verbose(s+"30", s+"25", s+"40"),
		"no start":              verbose(s+"10", "0", s+"40"),
		"no stop":               verbose(s+"10", s+"20", "0"),
		"no launch":             verbose("0", s+"20", s+"40"),
		"of the year 1970":      verbose(s+"10", "20", s+"40"),
		"no number":             verbose(s+"10", `"nan"`, s+"40"),
		"a week":                verbose(s+"10", s+"20", "1790600000000000"),
		"no channels":           strings.Replace(verbose(s+"10", "1", "1"), `{"channel_id":0,"kernel_start_ts":1,"kernel_stop_ts":1,"kernel_record_ts":1}`, "", 1),
	} {
		recs, reasons := read(&Parser{}, line("v4.0", headerA, body)+"\n")
		assert.Equal(t, []Reason{BadTime}, reasons, name)
		require.Len(t, recs, 1, "%s: it is counted all the same", name)
		assert.False(t, recs[0].Timed(), name)
	}
}

const stats = `"dump_stats":{"coll_records":2,"coll_dropped_total":90,"coll_dropped_since_last_dump":7,"p2p_records":1,"p2p_dropped_total":0,"p2p_dropped_since_last_dump":0}`

func TestDumpTellsWhatWasDropped(t *testing.T) {
	r := one(t, line("v4.1", headerA, stats))
	assert.Equal(t, Dump, r.Kind)
	assert.Equal(t, []Loss{{"coll_ring", 7}}, r.Lost, "since the dump before, not the total")
}

func TestOnlyNewFormatsLendTheirHeader(t *testing.T) {
	for version, want := range map[string]int{"v4.1": 1, "v4.2": 1, "v4.3": 4, "v4.4": 4} {
		recs, _ := read(&Parser{}, line(version, headerA, stats)+"\n{"+reduce("1")+"}\n{"+reduce("2")+"}\n{"+p2p+"}\n")
		assert.Len(t, recs, want, version)
		for _, r := range recs {
			assert.Equal(t, "0x0005d11a2b7c3e9f", r.Comm.ID)
			assert.Equal(t, version, r.Source.Version)
			assert.Equal(t, int64(4711), r.Source.PID)
		}
	}
}

func TestLinesBelongToTheDumpBefore(t *testing.T) {
	single := strings.NewReplacer(`"coll_records":2`, `"coll_records":1`, `"p2p_records":1`, `"p2p_records":0`).Replace(stats)
	recs, reasons := read(&Parser{}, line("v4.4", headerA, single)+"\n{"+reduce("1")+"}\n"+line("v4.4", headerB, single)+"\n{"+reduce("2")+"}\n{"+reduce("3")+"}\n")
	require.Len(t, recs, 4)
	assert.Equal(t, int64(4), recs[1].Comm.Ranks)
	assert.Equal(t, int64(2), recs[3].Comm.Ranks)
	assert.Equal(t, []Reason{NoContext}, reasons, "more lines than announced: the dump they belong to was lost")
}

func TestADumpThatIsCutShort(t *testing.T) {
	p := &Parser{}
	_, reasons := read(p, line("v4.3", headerA, stats)+"\n{"+reduce("1")+"}\n")
	require.Empty(t, reasons)
	var f *Fault
	s := NewSplitter(1<<16, SplitState{})
	s.Feed([]byte(line("v4.3", headerB, stats)+"\n"), func(l Line) {
		_, faults := p.Parse(&l)
		require.Len(t, faults, 1)
		f = faults[0]
	})
	assert.Equal(t, Short, f.Reason)
	assert.Equal(t, int64(2), f.Lost(), "announced were 3, one came")
}

func TestProxyLinesAreRecognised(t *testing.T) {
	proxy := strings.Replace(stats, `"coll_records":2`, `"proxy_records":1,"proxy_dropped_since_last_dump":4,"proxy_ops_dropped_since_last_dump":2,"coll_records":0`, 1)
	recs, reasons := read(&Parser{}, line("v4.4", headerA, proxy)+"\n"+`{"proxy_trace":{"record_type":"proxy_op","steps":[{"step":0}]}}`+"\n")
	assert.Empty(t, reasons)
	require.Len(t, recs, 2)
	assert.Equal(t, Proxy, recs[1].Kind)
	assert.Equal(t, []Loss{{"coll_ring", 7}, {"proxy_ring", 4}, {"proxy_pool", 2}}, recs[0].Lost)
}

func TestLinesThatAreLeftOut(t *testing.T) {
	swap := func(old, replacement string) string {
		l := line("v4.0", headerA, reduce("1"))
		out := strings.Replace(l, old, replacement, 1)
		if out == l {
			panic("nothing replaced: " + old)
		}
		return out
	}
	for text, want := range map[string]Reason{
		"garbage":                               NotJSON,
		`{"header":{"id":"0x1"`:                 NotJSON,
		line("v4.0", headerA, reduce("1"))[:90]: NotJSON,
		`[1,2]`:                                 NotJSON,
		`{}`:                                    NotInspector,
		line("v4.0", headerA, `"x":1`):          NotInspector,
		line("v4.5", headerA, reduce("1")):      UnknownVersion,
		line("", headerA, reduce("1")):          UnknownVersion,
		"{" + reduce("1") + "}":                 NoContext,
		swap(`"0x5d11a2b7c3e9f"`, `"5d11a2b7c3e9f"`):       BadHeader,
		swap(`"0x5d11a2b7c3e9f"`, `"0x0"`):                 BadHeader,
		swap(`"0x5d11a2b7c3e9f"`, `"0x1ffffffffffffffff"`): BadHeader,
		swap(`"rank":1`, `"rank":4`):                       BadHeader,
		swap(`"rank":1`, `"rank":-1`):                      BadHeader,
		swap(`"n_ranks":4`, `"n_ranks":0`):                 BadHeader,
		swap(`"n_ranks":4`, `"n_ranks":99999999`):          BadHeader,
		swap(`"pid":4711`, `"pid":0`):                      BadHeader,
		swap(`"hostname":"node-7"`, `"hostname":""`):       BadHeader,
		swap(`:1790000000000000`, `:1`):                    BadHeader,
		swap(`"coll_sn":1`, `"coll_sn":-1`):                BadValue,
		swap(`"coll_sn":1`, `"coll_sn":1.5`):               BadValue,
		swap(`"coll_sn":1`, `"coll_sn":1e17`):              BadValue,
		swap(`"coll_sn":1,`, ``):                           BadValue,
		swap(`"AllReduce"`, `""`):                          BadValue,
		swap(`_bytes":1000000`, `_bytes":-1`):              BadValue,
		swap(`_bytes":1000000`, `_bytes":9e15`):            BadValue,
		swap(`_us":500`, `_us":-0.5`):                      BadValue,
		swap(`_us":500`, `_us":"nan"`):                     BadValue,
		swap(`_us":500`, `_us":inf`):                       BadValue,
		swap(`_us":500`, `_us":1e12`):                      BadValue,
	} {
		recs, reasons := read(&Parser{}, text+"\n"+line("v4.0", headerA, reduce("2"))+"\n")
		assert.Equal(t, []Reason{want}, reasons, text)
		if assert.Len(t, recs, 1, "nothing is lost beyond it: %s", text) {
			assert.Equal(t, int64(2), recs[0].Seq)
		}
	}
}

// C's printf writes inf and nan, which is no JSON.
func TestABandwidthThatIsNoneIsLeftOut(t *testing.T) {
	for _, v := range []string{"inf", "-inf", "nan", "-nan", `"nan"`, "-1", "1e30"} {
		recs, reasons := read(&Parser{}, line("v4.0", headerA, strings.Replace(reduce("1"), "3.000000", v, 1))+"\n")
		assert.Equal(t, []Reason{BadRate}, reasons, v)
		require.Len(t, recs, 1, v)
		assert.False(t, recs[0].BusRate.OK)
	}
}

func TestDamagedLinesOfADumpWithAContext(t *testing.T) {
	dump := line("v4.4", headerA, stats)
	for name, tc := range map[string]struct {
		bad  string
		want []Reason
		seqs []int64
	}{
		"a line of the dump is counted off":      {`{"coll_perf":{"co`, []Reason{NotJSON, NoContext}, []int64{1}},
		"garbage takes nothing away":             {`garbage`, []Reason{NotJSON}, []int64{1, 2}},
		"another dump was lost, and its context": {line("v4.4", headerB, stats)[:150], []Reason{NotJSON, NoContext, NoContext}, nil},
		"a dump of an unknown version":           {line("v9.9", headerB, stats), []Reason{Short, UnknownVersion, UnknownVersion, UnknownVersion}, nil},
		"a dump with a header that can not be":   {strings.Replace(line("v4.4", headerB, stats), `"rank":0`, `"rank":2`, 1), []Reason{Short, BadHeader, NoContext, NoContext}, nil},
		"a gap may have swallowed another dump":  {"\x00\x00", []Reason{Gap, NoContext}, nil},
		"a line between that brings its own":     {line("v4.0", headerB, reduce("9")), nil, []int64{9, 1, 2}},
	} {
		text := dump + "\n" + tc.bad
		if tc.bad[0] != 0 {
			text += "\n"
		}
		recs, reasons := read(&Parser{}, text+"{"+reduce("1")+"}\n{"+reduce("2")+"}\n")
		var seqs []int64
		for _, r := range recs {
			if r.Kind == Collective {
				seqs = append(seqs, r.Seq)
			}
		}
		if tc.bad[0] == 0 {
			tc.want = append(tc.want, NoContext)
		}
		assert.Equal(t, tc.want, reasons, name)
		assert.Equal(t, tc.seqs, seqs, name)
	}
}

func TestContextSurvivesARestart(t *testing.T) {
	p := &Parser{}
	read(p, line("v4.4", headerA, stats)+"\n{"+reduce("1")+"}\n")
	again := &Parser{Context: p.Context, Unknown: p.Unknown}
	recs, reasons := read(again, "{"+reduce("2")+"}\n")
	assert.Empty(t, reasons)
	require.Len(t, recs, 1)
	assert.Equal(t, "node-7", recs[0].Source.Host)
}

func TestFaultsNameTheirPlace(t *testing.T) {
	p := &Parser{}
	s := NewSplitter(1<<16, SplitState{})
	var texts []string
	s.Feed([]byte("\n"+line("v4.0", headerA, reduce("1"))+"\n"+line("v4.0", headerA, reduce("-1"))+"\n"), func(l Line) {
		_, faults := p.Parse(&l)
		for _, f := range faults {
			texts = append(texts, f.String())
		}
	})
	first := len(line("v4.0", headerA, reduce("1"))) + 2
	require.Len(t, texts, 1)
	assert.Contains(t, texts[0], "line 3, offset ")
	assert.Contains(t, texts[0], "check coll_sn: got -1; want an integer from 0 to 2^53")
	assert.Contains(t, texts[0], "offset "+number{f: float64(first), there: true}.String()+":")
}
