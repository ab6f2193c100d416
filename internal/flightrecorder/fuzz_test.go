// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// tight are limits that a fuzzer reaches.
func tight() Options {
	o := Options{Stacks: true}
	o.Limits.Entries, o.Limits.Groups, o.Limits.Members, o.Limits.Distinct = 8, 8, 8, 32
	o.Limits.Pickle.Text, o.Limits.Pickle.Stack, o.Limits.Pickle.Memo = 256, 512, 256
	o.Limits.Pickle.Values, o.Limits.Pickle.Depth = 1024, 16
	return o
}

// check decodes and looks at all there is; invariants hold whatever the input.
func check(t *testing.T, data []byte) {
	t.Helper()
	o := tight()
	d, err := Decode(data, o)
	if err != nil {
		require.Nil(t, d)
		return
	}
	require.LessOrEqual(t, len(d.Entries), o.Limits.Entries)
	require.LessOrEqual(t, len(d.Groups), o.Limits.Groups)
	require.LessOrEqual(t, len(d.Status), o.Limits.Groups)
	require.LessOrEqual(t, len(d.texts), o.Limits.Distinct)
	require.LessOrEqual(t, len(d.stacks), o.Limits.Distinct)
	require.LessOrEqual(t, len(d.Problems), maxProblems)
	for i := range d.Entries {
		e := &d.Entries[i]
		d.Name(e)
		d.Tag(e)
		d.Sizes(e)
		d.Types(e)
		d.Frames(e)
	}
	s := d.State(model.Rank{Rank: 1}, "fuzz", StateOptions{Done: 2, Open: 4, Stacks: 2})
	require.LessOrEqual(t, len(s.Stacks), 2)
	open := 0
	for i := range s.Ops {
		op := &s.Ops[i]
		require.Less(t, op.Comm, len(s.Comms))
		require.LessOrEqual(t, op.Stack, len(s.Stacks))
		if !op.Done {
			open++
		}
	}
	require.LessOrEqual(t, open, 4)
}

// FuzzPickle: no pickle crashes the reader or goes beyond its limits.
func FuzzPickle(f *testing.F) {
	w := small("2.10")
	f.Add(frwrite.Pickle(w))
	w.Stacks = true
	f.Add(frwrite.Pickle(w))
	f.Add(frwrite.Pickle(batched()))
	f.Add([]byte("\x80\x02](}(X\x09\x00\x00\x00record_idq\x00K\x01X\x06\x00\x00\x00framesh\x00ue."))
	f.Fuzz(check)
}

// FuzzJSON: no JSON crashes the reader or goes beyond its limits.
func FuzzJSON(f *testing.F) {
	f.Add(frwrite.JSON(small("2.10")))
	f.Add(frwrite.JSON(batched()))
	f.Add([]byte(`[{"record_id": 3, "seq_id": 12, "pg_id": 1, "profiling_name": "gloo:recv 3<-?", "state": "scheduled"}]`))
	f.Fuzz(check)
}

// FuzzGathered: no file of gathered dumps crashes the reader, nests without end, or gives a dump and
// an error at once.
func FuzzGathered(f *testing.F) {
	d := &frwrite.Dump{Groups: []frwrite.Group{{Name: "0", Ranks: []int64{0}}}, Entries: []frwrite.Entry{{Name: "nccl:x", CollectiveSeq: 1, Group: "0"}}}
	one := string(frwrite.JSON(d))
	quoted, _ := json.Marshal(one)
	for _, s := range []string{
		one, one + "\n" + one, `{"0":` + one + `,"rank_1":` + string(quoted) + `}`, `[{"rank":1,"host":"a","dump":` + one + `}]`,
		string(quoted), `{"a":{"b":{"c":{"d":{"e":` + one + `}}}}}`, `{"0":"` + base64.StdEncoding.EncodeToString(frwrite.Pickle(d)) + `"}`, `{"rank":1,"dump":{"version":"2.4","entries":[`,
	} {
		f.Add([]byte(s))
	}
	var value any
	require.NoError(f, json.Unmarshal([]byte(one), &value))
	for protocol := 2; protocol <= 5; protocol++ {
		for _, v := range []any{
			[]frwrite.Pair{{Key: 0, Value: value}, {Key: "1", Value: frwrite.Pickle(d)}, {Key: 2, Value: one}, {Key: 3, Value: frwrite.ByteArray("x")}},
			[]any{[]frwrite.Pair{{Key: "rank", Value: 1}, {Key: "host", Value: "a"}, {Key: "dump", Value: value}}, value},
		} {
			f.Add(frwrite.Python(protocol, v))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		all := DecodeAll(in, tight())
		require.NotEmpty(t, all)
		for _, g := range all {
			require.NotEqual(t, g.Dump == nil, g.Err == nil)
			require.True(t, g.Rank >= -1 && g.Rank < maxRank)
		}
	})
}
