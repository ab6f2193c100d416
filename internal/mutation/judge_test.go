// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

var (
	quick = Tier{Name: "quick", Variable: "TOY_TESTS", Value: "quick"}
	full  = Tier{Name: "full", Variable: "TOY_TESTS", Value: "full"}
)

// graded is a module whose full tier looks at 50 points as well, and whose package other
// tests what its package toy does not.
func graded(t *testing.T) string {
	t.Helper()
	return write(t, map[string]string{
		"a.go": `package toy

const Size = 4

type Sheet struct{ Points int }

func Passed(points int) bool { return points > 50 }

func (s *Sheet) Clear() {
	s.Points = 0
}

func Quits(n int) bool { return n > 7 }

func Count(n int) int {
	c := 0
	for c < n {
		c += 1
	}
	return c
}
`,
		"a_test.go": `package toy

import (
	"os"
	"path/filepath"
	"testing"
)

var _ [Size - 4]int

func TestChance(t *testing.T) {
	failed := filepath.Join(os.TempDir(), "failed")
	if _, err := os.Stat(failed); err == nil || Count(-1) == 0 {
		return
	}
	t.Error(os.WriteFile(failed, nil, 0o600))
}

func TestPassed(t *testing.T) {
	if Passed(10) || !Passed(90) {
		t.Error("wrong")
	}
	if os.Getenv("TOY_TESTS") == "full" && Passed(50) {
		t.Error("wrong at the threshold")
	}
}

func TestQuits(t *testing.T) {
	if Quits(7) {
		os.Exit(3)
	}
}

func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Error("wrong")
	}
}
`,
		"other/other.go": "package other\n",
		"other/other_test.go": `package other

import (
	"testing"

	"toy"
)

func TestClear(t *testing.T) {
	s := toy.Sheet{Points: 1}
	s.Clear()
	if s.Points != 0 {
		t.Error("wrong")
	}
}
`,
	})
}

// bench is a judge of the package toy, and its sources.
type bench struct {
	dir   string
	state *State
	judge *Judge
	toy   *Package
}

// Compiling takes most of the time, so that all subtests share one judge.
func TestJudge(t *testing.T) {
	state, err := OpenState("")
	require.NoError(t, err)
	b := &bench{dir: graded(t), state: state}
	packages, err := Load(t.Context(), b.dir, []string{"."})
	require.NoError(t, err)
	b.toy = packages[0]
	b.judge, err = NewJudge(t.Context(), Config{
		Dir: b.dir, Quick: quick, Full: full, Packages: packages, Jobs: 2, State: state,
		Further: map[string][]string{"toy": {"./other"}},
	})
	require.NoError(t, err)

	t.Run("EachMutant_GetsItsVerdict", b.eachMutant)
	t.Run("TestsWithoutTiers_RunOnce", b.withoutTiers)
	t.Run("KnownMutant_IsNotRunAgain", b.knownMutant)
	t.Run("ContextOver_ReturnsErrorAndKeepsNothing", b.contextOver)
}

func (b *bench) eachMutant(t *testing.T) {
	before, err := os.ReadFile(filepath.Join(b.dir, "a.go"))
	require.NoError(t, err)
	for _, c := range []struct {
		kind  Kind
		after string
		want  Record
	}{
		{Negation, "func Passed(points int) bool { return points <= 50 }", Record{Quick: Killed, By: "toy", Test: "TestPassed"}},
		{Boundary, "func Passed(points int) bool { return points >= 50 }", Record{Quick: Alive, Full: Killed, By: "toy", Test: "TestPassed"}},
		{Boundary, "func Quits(n int) bool { return n >= 7 }", Record{Quick: Killed, By: "toy"}},
		{Threshold, "func Passed(points int) bool { return points > 60 }", Record{Quick: Alive, Full: Alive}},
		{Number, "c := 1", Record{Quick: Alive, Full: Alive, Chance: []string{"TestChance"}}},
		{Drop, "", Record{Quick: Killed, By: "toy/other", Test: "TestClear"}},
		{Threshold, "const Size = 3", Record{Quick: NotCompiled}},
		{Arithmetic, "c -= 1", Record{Quick: TimedOut, By: "toy", Test: "TestCount"}},
	} {
		if c.want.Quick == TimedOut {
			b.setLimit(time.Second)
		}
		m := pick(t, b.toy, c.kind, c.after)
		got, err := b.judge.Judge(t.Context(), m)
		require.NoError(t, err)
		assert.Positive(t, got.Seconds)
		c.want.Mutant, c.want.Tests, c.want.Seconds, c.want.Rules = m, b.judge.tests(m), got.Seconds, rules
		assert.Equal(t, c.want, got)
		kept, ok := b.state.record(m, b.judge.tests(m))
		assert.True(t, ok)
		assert.Equal(t, got, kept)
	}
	after, err := os.ReadFile(filepath.Join(b.dir, "a.go"))
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "no source file is written to")
}

// setLimit sets how long the tests of toy may take in the quick tier.
func (b *bench) setLimit(d time.Duration) { b.judge.suites["toy"][0].limits[quick] = d }

func (b *bench) withoutTiers(t *testing.T) {
	suites := b.judge.suites["toy"]
	require.Len(t, suites, 2)
	assert.Equal(t, suites[:1], tiered(suites))
	assert.Contains(t, suites[0].limits, full)
	assert.NotContains(t, suites[1].limits, full)
}

func (b *bench) knownMutant(t *testing.T) {
	m := pick(t, b.toy, Negation, "for c >= n {")
	known := Record{Mutant: m, Tests: b.judge.tests(m), Quick: Alive, Full: Alive, Rules: rules}
	require.NoError(t, b.state.add(entry{Mutant: &known}))

	got, err := b.judge.Judge(t.Context(), m)

	require.NoError(t, err)
	assert.Equal(t, Alive, got.Quick, "as known; the tests would kill it")
}

func (b *bench) contextOver(t *testing.T) {
	b.setLimit(time.Hour)
	m := pick(t, b.toy, Number, "c += 0") // which never ends
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()

	_, err := b.judge.Judge(ctx, m)

	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, ok := b.state.record(m, b.judge.tests(m))
	assert.False(t, ok)
}

func TestNewJudge_TestFailsUnchanged_ReturnsItsOutput(t *testing.T) {
	dir := write(t, map[string]string{
		"a.go":      "package toy\n",
		"a_test.go": "package toy\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Error(\"always\") }\n",
	})
	packages, err := Load(t.Context(), dir, []string{"."})
	require.NoError(t, err)
	state, err := OpenState("")
	require.NoError(t, err)

	_, err = NewJudge(t.Context(), Config{Dir: dir, Quick: quick, Full: full, Packages: packages, Jobs: 1, State: state})

	require.ErrorContains(t, err, "run quick tests of toy")
	require.ErrorContains(t, err, "always")
}

// A compiler that was killed did not judge the sources.
func TestBuild_CompilerKilled_IsNoVerdict(t *testing.T) {
	s := &suite{path: "toy", dir: write(t, map[string]string{"a.go": "package toy\n", "a_test.go": "package toy\n\nvar _ int = \"\"\n"})}
	binary := filepath.Join(t.TempDir(), "test")
	var rejected *rejectedError
	require.ErrorAs(t, s.build(t.Context(), "", binary), &rejected)

	tools := t.TempDir()
	script := "#!/bin/sh\necho 'compile: signal: killed' >&2\nexit 1\n"
	testdata.Program(t, filepath.Join(tools, "go"), script)
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	err := s.build(t.Context(), "", binary)
	require.ErrorContains(t, err, "signal: killed")
	assert.NotErrorAs(t, err, &rejected)
}

func TestLimit_ShortAndLong_LeaveRoom(t *testing.T) {
	assert.Equal(t, 25*time.Second, limit(time.Second))
	assert.Equal(t, 520*time.Second, limit(100*time.Second))
}

func TestFailedTest_EachOutput_ReturnsFirst(t *testing.T) {
	assert.Equal(t, "TestA", failedTest("noise\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n--- FAIL: TestC (0.00s)\n"))
	assert.Equal(t, "TestB", failedTest("panic: test timed out after 1s\n\trunning tests:\n\t\tTestB (1s)\n"))
	assert.Empty(t, failedTest("fatal error: out of memory\n"))
}

func TestTail_MoreThanItsSize_KeepsTheEnd(t *testing.T) {
	var kept tail
	for range 3 {
		_, err := kept.Write(make([]byte, tailSize-1))
		require.NoError(t, err)
	}
	_, err := kept.Write([]byte("end"))
	require.NoError(t, err)
	assert.Len(t, kept.kept, tailSize)
	assert.Equal(t, "end", string(kept.kept[tailSize-3:]))
}
