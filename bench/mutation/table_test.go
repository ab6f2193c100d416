// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/mutation"
)

func verdictOn(file string, kind mutation.Kind, quick, full mutation.Outcome) mutation.Record {
	m := mutation.Mutant{File: file, Line: 3, Column: 7, Kind: kind, Before: "x < 10", After: "x < 12"}
	r := mutation.Record{Mutant: m, Quick: quick, Full: full, By: "toy", Test: "TestA"}
	if full == mutation.Alive {
		r.By, r.Test = "", ""
	}
	return r
}

// verdicts are n mutants of which the quick tier kills all but missed.
func verdicts(n, missed int) mutation.Result {
	var r mutation.Result
	for i := range n {
		v := verdictOn("a/x.go", mutation.Threshold, mutation.Killed, "")
		if i < missed {
			v = verdictOn("b/y.go", mutation.Logic, mutation.Alive, mutation.Killed)
		}
		r.Records = append(r.Records, v)
	}
	return r
}

func TestReport_ShareBelowGoal_ReturnsError(t *testing.T) {
	var out strings.Builder

	require.NoError(t, report(&out, verdicts(100, 5)))
	require.ErrorContains(t, report(&out, verdicts(100, 6)), "got a share of 94.0 %; want 95.0 %")
	require.ErrorContains(t, report(&out, mutation.Result{}), "got no mutant that was killed")
}

func TestReport_EachVerdict_IsShown(t *testing.T) {
	result := verdicts(21, 1)
	result.Records = append(result.Records, verdictOn("c/z.go", mutation.Drop, mutation.Alive, mutation.Alive))
	result.Records[0].Chance = []string{"TestB"}
	result.Rejected, result.Unjudged = 4, 5
	var out strings.Builder

	require.NoError(t, report(&out, result))

	lines := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{
		"kind quick timed out full only timed out alive share",
		"threshold 20 0 0 0 0 100.0 %",
		"logic 0 0 1 0 0 0.0 %",
		"drop 0 0 0 0 1 -",
		"b 0 0 1 0 0 0.0 %",
		"all 20 0 1 0 1 95.2 %",
		"b/y.go:3:7: logic (TestA of toy)",
		"c/z.go:3:7: drop",
		"- x < 10",
		"+ x < 12",
		"judged 22 mutants, 5 not judged, 4 replaced that do not compile, a test failed by chance on 1",
		// Wilson's bounds of 20 in 21, worked out by hand.
		"the quick tier kills 20 of the 21 mutants that either tier kills: 95.2 % (95 % interval 77.3 % to 99.2 %)",
	} {
		assert.True(t, lines[want], "%q in\n%s", want, out.String())
	}
}

func TestListed_CommentsAndFurtherPackages_AreRead(t *testing.T) {
	packages, further := listed("# why\n./a ./b ./c # so\n\n./d\n")

	assert.Equal(t, []string{"./a", "./d"}, packages)
	assert.Equal(t, []string{"./b", "./c"}, further["./a"])
	assert.Empty(t, further["./d"])
}

func TestListed_PackagesFile_NamesFolders(t *testing.T) {
	packages, further := listed(packagesFile)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		for _, folder := range append([]string{p}, further[p]...) {
			files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
			require.NoError(t, err)
			assert.NotEmpty(t, files, folder)
		}
	}
}

func TestByImportPath_PackageBelowFolder_GetsItsFurtherPackages(t *testing.T) {
	dir := t.TempDir()
	packages := []*mutation.Package{{Path: "m/a", Dir: filepath.Join(dir, "a")}, {Path: "m/b", Dir: filepath.Join(dir, "b")}}

	by, err := byImportPath(dir, packages, map[string][]string{"./a": {"./b"}})

	require.NoError(t, err)
	assert.Equal(t, []string{"./b"}, by["m/a"])
	assert.Empty(t, by["m/b"])
}

func TestParse_Nonsense_ReturnsError(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-jobs", "0"}, {"-deadline", "-1s"}, {"./internal/ks"}} {
		_, err := parse(args, os.Stderr)
		require.ErrorContains(t, err, "parse flags", args)
	}
}

func TestRun_List_PrintsSampleAndRunsNothing(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	var out strings.Builder

	err := run(t.Context(), []string{"-list", "-n", "3", "-packages", "./internal/ks"}, &out, os.Stderr)

	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(out.String(), "internal/ks/"))
}
