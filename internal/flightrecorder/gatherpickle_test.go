// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// gatheredDump is a small dump as a script has it in memory.
func gatheredDump(t *testing.T, name string) map[string]any {
	t.Helper()
	d := &frwrite.Dump{Groups: []frwrite.Group{{Name: "0", Ranks: []int64{0, 1}}}, Entries: []frwrite.Entry{{Name: name, CollectiveSeq: 1, Group: "0"}}}
	var out map[string]any
	in := json.NewDecoder(bytes.NewReader(frwrite.JSON(d)))
	in.UseNumber()
	require.NoError(t, in.Decode(&out))
	for _, e := range out["entries"].([]any) {
		e.(map[string]any)["frames"] = []any{map[string]any{"name": "f_" + name, "filename": "a.py", "line": 3}}
	}
	return out
}

// Each dump of a gathered pickle has its own texts and stacks, though the pickle shares them.
func TestDecodeAll_SharedTexts_StayThoseOfTheirDump(t *testing.T) {
	in := frwrite.Python(4, []frwrite.Pair{{Key: 3, Value: gatheredDump(t, "nccl:a")}, {Key: 5, Value: gatheredDump(t, "nccl:b")}, {Key: 7, Value: gatheredDump(t, "nccl:a")}})
	all := DecodeAll(in, Options{Stacks: true})
	require.Len(t, all, 3)
	for i, want := range []struct {
		rank int64
		name string
	}{{3, "nccl:a"}, {5, "nccl:b"}, {7, "nccl:a"}} {
		d := all[i].Dump
		require.NoError(t, all[i].Err)
		assert.Equal(t, want.rank, all[i].Rank)
		require.Len(t, d.Entries, 1)
		assert.Equal(t, want.name, d.Name(&d.Entries[0]))
		require.Len(t, d.Frames(&d.Entries[0]), 1)
		assert.Equal(t, "f_"+want.name, d.Frames(&d.Entries[0])[0].Name)
	}
}

// One dump that is damaged leaves the others as they are.
func TestDecodeAll_OneBadVersion_KeepsTheOthers(t *testing.T) {
	bad := gatheredDump(t, "nccl:a")
	bad["version"] = "9.1"
	all := DecodeAll(frwrite.Python(2, []any{[]frwrite.Pair{{Key: "rank", Value: 0}, {Key: "dump", Value: bad}}, []frwrite.Pair{{Key: "rank", Value: 1}, {Key: "dump", Value: gatheredDump(t, "nccl:b")}}}), Options{})
	require.Len(t, all, 2)
	require.ErrorContains(t, all[0].Err, "version")
	assert.EqualValues(t, 0, all[0].Rank)
	require.NoError(t, all[1].Err)
	assert.EqualValues(t, 1, all[1].Rank)
}

// What many dumps share counts for each of them: a small file cannot take much memory.
func TestDecodeAll_DumpsThatShareMuch_AreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("\x80\x02]q\x00(X\x00\x20\x00\x00" + strings.Repeat("a", 0x2000) + "q\x01")
	for range 2000 {
		b.WriteString("}(X\x07\x00\x00\x00entries]X\x07\x00\x00\x00versionX\x03\x00\x00\x002.4X\x0c\x00\x00\x00nccl_versionh\x01u")
	}
	b.WriteString("e.")
	o := Options{}
	o.Limits.Pickle.Bytes = 1 << 18
	all := DecodeAll([]byte(b.String()), o)
	require.Len(t, all, 1)
	require.ErrorIs(t, all[0].Err, pickle.ErrLimit)
	assert.ErrorContains(t, all[0].Err, "one file per rank")
}

// A file of many references to one dump in bytes reads it a bounded number of times.
func TestDecodeAll_BytesReferredToOften_AreReadWithinTheLimit(t *testing.T) {
	one := frwrite.Pickle(&frwrite.Dump{Entries: []frwrite.Entry{{Name: "nccl:a", CollectiveSeq: 1}}})
	in := frwrite.Python(3, []any{one})
	in = append(in[:len(in)-2], []byte(strings.Repeat("h\x01", 5000)+"e.")...)
	o := Options{}
	o.Limits.Pickle.Bytes = len(in)
	all := DecodeAll(in, o)
	assert.LessOrEqual(t, len(all), len(in)/len(one)+1)
	assert.Greater(t, len(all), 1)
}
