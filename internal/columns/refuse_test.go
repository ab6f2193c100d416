// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// small is a file of two operations.
func small(tb testing.TB) []byte {
	tb.Helper()
	return written(tb, Meta{Job: "job", Resolution: Exact, Producer: "1.0"}, []Batch{{RankOps: model.RankOps{
		Rank: model.Rank{JobID: "job", Rank: 3},
		Ops: []model.Op{
			{Kind: model.KindCompute, Name: "gemm", Start: 1, End: 5, WorkBytes: model.Some(int64(64)), Waits: model.ProxyWaits{GPU: model.Some(0.5)}},
			{Kind: model.KindStep, Name: "step", Start: 1, End: 9, Step: model.Some(int64(2)), Links: []model.SpanRef{{Span: model.SpanID{1}}}},
		},
	}}})
}

// foreign is a file of another schema.
func foreign(t *testing.T, columns []column, pairs map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](&out, schemaOf(columns), parquet.CreatedBy("another", "1", "x"))
	for k, v := range pairs {
		w.SetKeyValueMetadata(k, v)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestOpen_WhatIsNoFileOfTheFormat_SaysWhatItIs(t *testing.T) {
	whole := small(t)
	retyped := append([]column{}, table...)
	for i := range retyped {
		if retyped[i].name == "start" {
			retyped[i].kind = double
		}
	}
	without := append([]column{}, table[1:]...)
	long := append([]byte{}, whole...)
	binary.LittleEndian.PutUint32(long[len(long)-8:], math.MaxUint32)
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"empty":          {nil, "read beginning of file: got no Parquet file; want PAR1 at its beginning"},
		"text":           {[]byte("some text that is long enough"), "read beginning of file: got no Parquet file; want PAR1 at its beginning"},
		"cut":            {whole[:len(whole)-100], "read end of file: got no PAR1: the file is cut short, or is still being copied; want a whole file"},
		"cut to a word":  {whole[:6], "read end of file: got no PAR1: the file is cut short, or is still being copied; want a whole file"},
		"long footer":    {long, "read end of file: got metadata of 4294967295 bytes; want at most 16777216, and no more than the file has"},
		"another schema": {foreign(t, without, nil), `read schema: got no column job_id (written by "another version 1(build x)"); want a file of the parquet exporter of Lockstep`},
		"another type":   {foreign(t, retyped, map[string]string{keyVersion: "1"}), `read schema: got column start of type double; want int64 (written by "another version 1(build x)"); want a file of the parquet exporter of Lockstep`},
		"no version":     {foreign(t, table, nil), `read metadata: got no lockstep_schema_version (written by "another version 1(build x)"); want a file of the parquet exporter of Lockstep`},
		"newer": {
			foreign(t, without, map[string]string{keyVersion: "2", keyProducer: "9.1"}),
			"read metadata: got format version 2; want at most 1: read the file with the version of lockstep that wrote it (9.1), or a later one",
		},
		"no number":  {foreign(t, table, map[string]string{keyVersion: "one"}), `read metadata: got lockstep_schema_version "one"; want 1 to 1`},
		"resolution": {foreign(t, table, map[string]string{keyVersion: "1", keyResolution: "7"}), `read metadata: got lockstep_time_resolution_ns "7"; want 1 or 100`},
		"sequence":   {foreign(t, table, map[string]string{keyVersion: "1", keySequence: "x"}), `read metadata: got lockstep_file_sequence "x"; want a number`},
	} {
		_, _, err := read(tc.file)
		assert.EqualError(t, err, tc.want, name)
	}
}

func TestFile_FlippedBit_IsFoundByItsChecksum(t *testing.T) {
	whole := small(t)
	found := 0
	for at := len(Magic); at < 400; at++ {
		damaged := append([]byte{}, whole...)
		damaged[at] ^= 4
		_, _, err := read(damaged)
		if err != nil && strings.Contains(err.Error(), "the file is damaged") {
			found++
		}
	}
	assert.Positive(t, found)
}

func TestDecoders_DataThatLie_AreRefused(t *testing.T) {
	uvarint := func(numbers ...uint64) (b []byte) {
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	for name, tc := range map[string]struct {
		decode func() error
		want   string
	}{
		"delta of more values":  {func() error { _, err := decodeDelta(uvarint(128, 4, 1<<40, 0), 3); return err }, "got 1099511627776 values; want 3"},
		"delta of large blocks": {func() error { _, err := decodeDelta(uvarint(1<<20, 4, 3, 0), 3); return err }, "got blocks of 1048576 values in 4 packs"},
		"delta of no packs":     {func() error { _, err := decodeDelta(uvarint(128, 0, 3, 0), 3); return err }, "got blocks of 128 values in 0 packs"},
		"delta of wide values":  {func() error { _, err := decodeDelta(append(uvarint(8, 1, 3, 0, 0), 65), 3); return err }, "got differences of 65 bits; want at most 64"},
		"delta that ends":       {func() error { _, err := decodeDelta(uvarint(128, 4, 3, 0), 3); return err }, errShort.Error()},
		"run of nothing":        {func() error { _, err := decodeHybrid([]byte{0, 1}, 1, 3); return err }, "got a run of no values"},
		"pack that ends":        {func() error { _, err := decodeHybrid(uvarint(1<<40|1), 1, 3); return err }, errShort.Error()},
		"wide run":              {func() error { _, err := decodeHybrid(nil, 33, 3); return err }, "got integers of 33 bits; want at most 32"},
		"index":                 {func() error { _, err := indexesOf([]byte{2, 2 << 1, 3}, 3, 2); return err }, "got index 3 of a dictionary of 3 values"},
		"text that is long":     {func() error { _, err := decodeTexts([]byte{9, 0, 0, 0, 'a', 0, 0, 0}, 1, 8); return err }, "got a text of 9 bytes; want at most 8"},
		"text that ends":        {func() error { _, err := decodeTexts([]byte{9, 0, 0, 0, 'a', 0, 0, 0}, 1, 10); return err }, errShort.Error()},
		"doubles":               {func() error { _, err := decodeDoubles(make([]byte, 9), 1); return err }, "got 9 bytes for 1 doubles; want 8"},
		"integers":              {func() error { _, err := decodeIntegers(make([]byte, 7), 1); return err }, "got 7 bytes for 1 integers; want 8"},
		"flags":                 {func() error { _, err := decodeFlags(make([]byte, 1), 9); return err }, errShort.Error()},
		"nested structures":     {func() error { _, err := parseFooter(bytes.Repeat([]byte{0x1c}, 100)); return err }, "read metadata: " + errThriftDepth.Error()},
		"nested lists": {func() error {
			_, err := parseFooter(append([]byte{0x79}, bytes.Repeat([]byte{0x19}, 100)...))
			return err
		}, "read metadata: " + errThriftDepth.Error()},
		"map": {func() error { _, err := parseFooter([]byte{0x1b, 1}); return err }, "read metadata: " + errThriftType.Error()},
		"list of more than there is": {
			func() error { _, err := parseFooter([]byte{0x29, 0xfc, 0xff, 0xff, 0x7f}); return err }, "read metadata: " + errThriftEnd.Error(),
		},
	} {
		assert.EqualError(t, tc.decode(), tc.want, name)
	}
}

// By the example of Encodings.md, and by the bits of the specification.
func TestDecoders_ExamplesOfTheSpecification_AreRead(t *testing.T) {
	packed, err := decodeHybrid([]byte{1<<1 | 1, 0b10001000, 0b11000110, 0b11111010}, 3, 8)
	require.NoError(t, err)
	assert.Equal(t, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, packed)

	// 7, 5, 3, 1, 2, 3, 4, 5: differences -2, -2, -2, 1, 1, 1, 1; the least is -2, so that 0, 0, 0, 3, 3, 3, 3 are packed in two bits.
	deltas, err := decodeDelta([]byte{8, 1, 8, 14, 3, 2, 0b11000000, 0b00111111}, 8)
	require.NoError(t, err)
	assert.Equal(t, []int64{7, 5, 3, 1, 2, 3, 4, 5}, deltas)

	split := []byte{0xaa, 0x00, 0xbb, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0x22}
	doubles, err := decodeDoubles(split, 2)
	require.NoError(t, err)
	assert.Equal(t, []uint64{0xcc000000_0000bbaa, 0x22000000_00001100}, []uint64{math.Float64bits(doubles[0]), math.Float64bits(doubles[1])})
}
