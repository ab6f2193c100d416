// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// at is an answer in JSON that was given at a time.
func at(minute string) string {
	one := rastest.JSON(rastest.Comm{Hash: 0xab, Members: []rastest.Member{{Rank: 0, PID: 7, Host: `h{"`, AllReduce: 3}}})
	return strings.Replace(one, "10:00:00", "10:"+minute+":00", 1)
}

// flat is an answer on one line.
func flat(minute string) string { return strings.ReplaceAll(at(minute), "\n", " ") }

func TestParseAnswers_ReadsEachOfAFile(t *testing.T) {
	text := rastest.Report(4, "", "")
	for name, tc := range map[string]struct {
		text string
		want []string // the times; "text" for an answer in text
	}{
		"one":                        {at("01"), []string{"01"}},
		"one behind another":         {at("01") + at("02") + at("03"), []string{"01", "02", "03"}},
		"without a break between":    {flat("01") + flat("02"), []string{"01", "02"}},
		"one a line":                 {flat("01") + "\n" + flat("02") + "\r\n\n" + flat("03") + "\n", []string{"01", "02", "03"}},
		"a list":                     {"[\n" + at("01") + ",\n" + at("02") + "]\n", []string{"01", "02"}},
		"a list on one line":         {"[" + flat("01") + "," + flat("02") + "]", []string{"01", "02"}},
		"a list behind a mark":       {"\xef\xbb\xbf [" + at("01") + "]", []string{"01"}},
		"behind prompts":             {"$ date\nFri {x}\n$ ncclras -f json\n" + at("01") + "$ ncclras -f json\n" + at("02") + "$ exit\n", []string{"01", "02"}},
		"behind logs with brackets":  {"[node1] asking\n" + at("01") + "[node1] asking\n" + at("02"), []string{"01", "02"}},
		"beside other objects":       {text + "{\"step\": 5}\n" + flat("01") + "\n{\"step\": 6}\n" + flat("02"), []string{"text", "01", "02"}},
		"keys sorted":                {flat("01") + `{"communicators": [], "timestamp": "2026-11-23 10:02:00"}`, []string{"01", "02"}},
		"text and JSON":              {text + at("01") + text, []string{"text", "01", "text"}},
		"text behind JSON, one line": {flat("01") + "\n" + text, []string{"01", "text"}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := ParseAnswers(strings.NewReader(tc.text), 1<<20)
			require.NoError(t, err)
			var got []string
			for _, s := range all {
				if s.Prose {
					got = append(got, "text")
					continue
				}
				got = append(got, s.Taken[len("2026-11-23 10:"):][:2])
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// What is read before a fault counts, and the fault is named with its place.
func TestParseAnswers_OfADamagedFile_AreThoseInFrontOfTheFault(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
		says string
	}{
		"the last is cut":        {at("01") + at("02")[:900], 1, "answer 2"},
		"the only one is cut":    {at("02")[:900], 0, "answer 1"},
		"a list is cut":          {"[" + flat("01") + "," + flat("02"), 2, "the list has no end"},
		"a list is cut in one":   {"[" + flat("01") + "," + flat("02")[:700], 1, "answer 2"},
		"a list of others":       {"[" + flat("01") + `, {"slow_rank": 5}]`, 1, "answer 2"},
		"a table is lacking":     {at("01") + "NCCL version 2.26.2 compiled with CUDA 12.6\n#0-0 (ab) MISMATCH\n", 1, "want the whole output of ncclras"},
		"nothing":                {"hello\n", 0, "want the output of ncclras"},
		"an empty list":          {"[]", 0, "want the output of ncclras"},
		"blanks":                 {" \n", 0, "want the output of ncclras"},
		"a key of another shape": {at("01") + strings.Replace(at("02"), `"size": 1`, `"size": "x"`, 1), 1, "answer 2"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := ParseAnswers(strings.NewReader(tc.text), 1<<20)
			require.ErrorContains(t, err, tc.says)
			assert.Len(t, all, tc.want)
			for _, internal := range []string{"json: cannot", "EOF", "invalid character", "Go "} {
				assert.NotContains(t, err.Error(), internal)
			}
		})
	}
	_, err := ParseAnswers(strings.NewReader(at("01")+at("02")), 1000)
	require.ErrorIs(t, err, errTooLarge)
	_, err = ParseAnswers(strings.NewReader(strings.Repeat(`{"communicators":[]}`, maxAnswers+1)), 1<<20)
	require.ErrorIs(t, err, errTooLarge)
}
