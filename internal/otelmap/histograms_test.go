// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

func TestHistogramsRoundTrip(t *testing.T) {
	h := stats.NewHistogram()
	for _, s := range []float64{0, 1e-6, 1.5e-6, 0.010, 0.010, 3} {
		h.Add(s)
	}
	want := map[string]*stats.Histogram{"gemm \"q\"": h, "nothing": stats.NewHistogram()}
	got, err := UnmarshalHistograms(MarshalHistograms(want))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Empty(t, MarshalHistograms(nil))
}

// The example of docs/format/summary.md: 1 s is the upper edge of bucket -1,
// 2 s that of bucket 127, at 128 buckets per factor of two.
func TestHistogramsWire(t *testing.T) {
	h := stats.NewHistogram()
	for _, s := range []float64{0, 1, 2, 2} {
		h.Add(s)
	}
	assert.JSONEq(t, `{"v":1,"scale":7,"keys":{"gemm":{"n":4,"sum":5,"zero":1,"b":[-1,1,127,2]}}}`,
		MarshalHistograms(map[string]*stats.Histogram{"gemm": h}))
}

// MarshalHistograms does not cut a document, since a part of one is invalid. It adds the rarest keys up
// under one key, and loses no duration.
func TestMarshalHistograms_TooMuch_FoldsRareKeys(t *testing.T) {
	all := map[string]*stats.Histogram{}
	for i := range 2048 {
		h := stats.NewHistogram()
		for range 1 + i%4 {
			h.Add(float64(i + 1))
		}
		all[fmt.Sprint(i, strings.Repeat("x", 1000))] = h
	}
	text := MarshalHistograms(all)
	assert.LessOrEqual(t, len(text), MaxDocument)
	got, err := UnmarshalHistograms(text)
	require.NoError(t, err)
	durations, sum := int64(0), 0.0
	for key, h := range got {
		durations, sum = durations+h.Count, sum+h.Sum
		if key != model.OpOther {
			assert.GreaterOrEqual(t, h.Count, int64(3), "those that occur most are told apart")
		}
	}
	assert.Greater(t, len(got), 256)
	assert.Equal(t, int64(512*(1+2+3+4)), durations)
	want := 0.0
	for _, h := range all {
		want += h.Sum
	}
	assert.InDelta(t, want, sum, 1e-3)
}

func TestHistogramsBadInput(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                 "read histograms: unexpected end of JSON input",
		`{"v":2,"scale":7,"keys":{}}`:       "read histograms: got version 2; want 1",
		`{"v":1,"scale":3,"keys":{"a":{}}}`: "read histograms: got scale 3; want 7",
		`{"v":1,"scale":7,"keys":{"a":{"b":[1]}}}`:            `read histogram of "a": got 1 numbers in b; want pairs`,
		`{"v":1,"scale":7,"keys":{"a":{"b":[4294967296,1]}}}`: `read histogram of "a": got bucket 4294967296 with count 1; want a 32-bit index and a count from 0`,
		`{"v":1,"scale":7,"keys":{"a":{"b":[0,-1]}}}`:         `read histogram of "a": got bucket 0 with count -1; want a 32-bit index and a count from 0`,
	} {
		_, err := UnmarshalHistograms(text)
		assert.EqualError(t, err, want)
	}
}

func FuzzUnmarshalHistograms(f *testing.F) {
	f.Add(`{"v":1,"scale":7,"keys":{"gemm":{"n":4,"sum":5,"zero":1,"b":[-1,1,127,2]}}}`)
	f.Add(`{"v":1,"scale":7,"keys":{"a":{"b":[1]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := UnmarshalHistograms(text)
		if err != nil {
			return
		}
		again, err := UnmarshalHistograms(MarshalHistograms(got))
		if len(got) > 0 {
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	})
}
