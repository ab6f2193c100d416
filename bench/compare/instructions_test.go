// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRefsOf_OutputOfCachegrind_TheCount(t *testing.T) {
	const text = "BenchmarkAdd \t    1000\t    390854 ns/op\t     165.1 ns/operation\t     24592 B/op\t   7 allocs/op\nPASS\n==12447== \n==12447== I   refs:      89,642,511\n"
	n, bytes, err := refsOf(text)
	require.NoError(t, err)
	assert.Equal(t, 89642511, int(n))
	assert.Equal(t, 24592, int(bytes))
	_, _, err = refsOf("BenchmarkAdd\nPASS\n")
	assert.ErrorContains(t, err, "I refs")
}

func TestSpan_Each_WithoutWhatIsBeforeAndAfter(t *testing.T) {
	const before, operation = 5e6, 300
	assert.InDelta(t, operation, span{few: 10, many: 40}.each(before+10*operation, before+40*operation), 1e-9)
}

func TestStopTimer_ItselfOrByFunctions_Named(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": `package a
func BenchmarkInLoop(b *testing.B) { b.Run("x", func(b *testing.B) { for b.Loop() { b.StopTimer(); b.StartTimer() } }) }
func BenchmarkByHelper(b *testing.B) { feed(b) }
func BenchmarkByHelperOfHelper(b *testing.B) { new(rig).run(b) }
func BenchmarkByValue(b *testing.B) { b.Run("x", feed) }
func BenchmarkNever(b *testing.B) { b.ResetTimer(); other(b) }
`,
		"b_test.go": `package a
func feed(b *testing.B) { b.StopTimer(); b.StartTimer() }
func (r *rig) run(b *testing.B) { again(b, 2) }
func again(b *testing.B, n int) { if n > 0 { again(b, n-1) }; feed(b) }
func other(b *testing.B) { b.ReportAllocs() }
func TestFeed(t *testing.T) { testing.Benchmark(feed) }
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	assert.Equal(t, map[string]bool{
		"BenchmarkInLoop": true, "BenchmarkByHelper": true, "BenchmarkByHelperOfHelper": true, "BenchmarkByValue": true,
	}, stopTimer(dir))
}

func TestParse_FlagsOfInstructions_RefusedWhereTheySayNothing(t *testing.T) {
	for _, args := range [][]string{{"-packages", "^nothing$"}, {"-instructions", "-benchtime", "1s"}} {
		_, err := parse(append([]string{"-base", "main"}, args...), io.Discard)
		assert.ErrorContains(t, err, "want", args)
	}
}

func TestSpanOf_AnyTime_MoreThanFew(t *testing.T) {
	for _, ns := range []float64{0.3, 25, 4e3, 1e6, 5e7, tooLong} {
		s := spanOf(ns, 1)
		assert.Greater(t, s.many, s.few, "%g ns", ns)
		assert.GreaterOrEqual(t, s.few, 2, "with one operation go test runs a benchmark once, with more twice")
		assert.Equal(t, 3*s.many, spanOf(ns, 3).many)
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
	base, head := &revision{name: "base"}, &revision{name: "head"}
	c := counter{
		pkg: "internal/incident", name: "BenchmarkAdd", span: span{2, 8}, base: []float64{100, 104}, head: []float64{114, 110},
		allocated: map[*revision]float64{base: 64, head: 32}, untimed: true,
	}
	c.report(&out, base, head, &all)
	require.NoError(t, all.write(&out))
	c = counter{pkg: "internal/ks", name: "BenchmarkTwo", span: span{2, 8}, base: []float64{50}, head: []float64{-1}}
	c.report(&out, base, head, &all)
	c = counter{pkg: "internal/ks", name: "BenchmarkThree", span: span{2, 8}, base: []float64{100, 120}, head: []float64{300, 300}, allocated: map[*revision]float64{}}
	c.report(&out, base, head, &all)
	assert.ErrorContains(t, all.write(&out), "1 failed")
	for _, want := range []string{
		"incident Add", "1.098", "64, 32  more  with what is not timed", "too few are counted",
		"1 benchmarks: geometric mean of the ratios 1.098, largest 1.098, 1 above 1.05; 1 unsteady, 0 not counted, 1 failed",
		"ks Three",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.Error(t, new(summary).write(&out))
}
