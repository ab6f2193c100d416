// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRefsOf_OutputOfCachegrind_TheCount(t *testing.T) {
	const text = "BenchmarkAdd \t    1000\t    390854 ns/op\nPASS\n==12447== \n==12447== I   refs:      89,642,511\n"
	n, err := refsOf(text)
	require.NoError(t, err)
	assert.Equal(t, 89642511.0, n)
	_, err = refsOf("BenchmarkAdd\nPASS\n")
	assert.ErrorContains(t, err, "I refs")
}

func TestSpanOf_AnyTime_MoreThanFew(t *testing.T) {
	for _, ns := range []float64{0.3, 25, 4e3, 1e6, 5e7, tooLong} {
		s := spanOf(ns)
		assert.Greater(t, s.many, s.few, "%g ns", ns)
		assert.GreaterOrEqual(t, s.few, 2, "with one operation go test runs a benchmark once, with more twice")
		assert.LessOrEqual(t, float64(s.many)*ns, max(counted, fewest*ns), "%g ns", ns)
	}
}

func TestExactly_NamesAlike_MatchesOne(t *testing.T) {
	want := strings.Split(exactly("BenchmarkMap/get/a+b"), "/")
	for i, name := range []string{"BenchmarkMap", "get", "a+b"} {
		assert.Regexp(t, want[i], name)
		assert.False(t, regexp.MustCompile(want[i]).MatchString(name+"s"))
	}
}

func TestCounter_Report_RatioAndSum(t *testing.T) {
	var all summary
	var out strings.Builder
	c := counter{pkg: "internal/incident", name: "BenchmarkAdd", span: span{2, 8}, base: []float64{100, 120}, head: []float64{132, 110}, allocated: [2]float64{64, 32}}
	c.report(&out, &all)
	c = counter{pkg: "internal/ks", name: "BenchmarkTwo", span: span{2, 8}, base: []float64{50}, head: []float64{-1}}
	c.report(&out, &all)
	all.print(&out)
	assert.Contains(t, out.String(), "incident Add")
	assert.Contains(t, out.String(), "1.100")
	assert.Contains(t, out.String(), "64, 32  more")
	assert.Contains(t, out.String(), "too few are counted")
	assert.Contains(t, out.String(), "1 benchmarks: geometric mean of the ratios 1.100, largest 1.100, 1 above 1.05; 1 failed")
}

func TestTimes_AddAll_BytesOfEachBenchmark(t *testing.T) {
	const text = "BenchmarkRhythm/ranks=64 \t 26\t 3730677 ns/op\t 165.1 ns/operation\t 24592 B/op\t 7 allocs/op\nBenchmarkB \t 1\t 5 ns/op\n"
	bytes, ns := times{}, times{}
	bytes.addAll(allocLine, text)
	ns.add(text)
	assert.Equal(t, times{"BenchmarkRhythm/ranks=64": {24592}}, bytes)
	assert.Equal(t, times{"BenchmarkRhythm/ranks=64": {3730677}, "BenchmarkB": {5}}, ns)
}
