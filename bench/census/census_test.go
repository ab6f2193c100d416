// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

func groupsOf(all []count) (out []string) {
	for _, c := range all {
		out = append(out, c.group)
	}
	return out
}

func TestCensus_ToyModule(t *testing.T) {
	module := toy(t)

	t.Run("lives", func(t *testing.T) {
		got := lives(module)
		assert.Equal(t, []string{
			"internal/engine.Watch", "internal/engine.Watch", "internal/engine.Begin", "internal/engine.Watch", "internal/engine.Watch",
		}, groupsOf(got), "neither a copy nor a revision of something else counts")
		assert.Equal(t, "internal/engine/lives.go:8", got[0].place)
		assert.Equal(t, "Finding{Revision: 1, Status: model.Open}", got[2].what)
	})
	t.Run("parses", func(t *testing.T) {
		got := parses(module)
		assert.Equal(t, []string{"internal/engine.cost"}, groupsOf(got))
		assert.Equal(t, "into shadow", got[0].what)
	})
	t.Run("quantiles", func(t *testing.T) {
		got := quantiles(module)
		assert.Equal(t, []string{
			"internal/engine.medianOf", "internal/engine.typical", "internal/engine.percentile", "internal/engine.medianBySwaps",
			"internal/engine.Histogram", "internal/engine.buckets",
		}, groupsOf(got), "neither the name of a number of internal/stats, nor the middle of an interval, nor a document counts")
		assert.Equal(t, []string{"function, by name", "function, by shape", "histogram"}, []string{got[0].what, got[1].what, got[4].what})
	})
	t.Run("maps", func(t *testing.T) {
		got := mapFields(module, map[string]string{"internal/engine.table.excused": "why", "internal/engine.table.gone": "why"})
		assert.Equal(t, []string{
			"internal/engine.registry.byName", "internal/engine.visits.byName", "internal/engine.table.plain",
			"internal/engine.table.nested", "internal/engine.table.copied", "internal/engine.table.byAlias",
			"internal/engine.table.shared",
		}, groupsOf(got.unlimited))
		assert.Equal(t, []string{"internal/engine.table.limited"}, groupsOf(got.checked))
		assert.Equal(t, 1, got.excused)
		assert.Equal(t, []string{"internal/engine.table.gone"}, got.unused)
	})
	t.Run("evictions", func(t *testing.T) {
		got := evictsFrom(module, map[string]string{
			"internal/engine.kept.old kept.ages": "why", "internal/engine.kept.listed kept.ages": "why", "internal/engine.kept.drop kept.sizes": "why",
		})
		assert.Equal(t, []string{
			"internal/engine.leave registry.byName", "internal/engine.kept.each kept.ages", "internal/engine.kept.fit kept.sizes",
			"internal/engine.kept.listed kept.sizes",
		}, groupsOf(got.unexplained), "neither a map of another walk, nor one of the function alone, nor a call of what counts itself, nor one of a number or of one name")
		assert.Equal(t, "drops from ages", got.unexplained[1].what)
		assert.Equal(t, []string{"internal/engine.kept.old kept.ages", "internal/engine.kept.listed kept.ages"}, groupsOf(got.excused))
		assert.Equal(t, []string{"internal/engine.kept.drop kept.sizes"}, got.unused)
	})
	t.Run("lengths", func(t *testing.T) {
		assert.Equal(t, []string{
			"internal/engine.names.byHand", "internal/engine.bounded.Files", "internal/engine.lengths.byHand",
		}, groupsOf(mapFields(module, nil).bounded), "whether a map is empty is no limit, and a Room is no map")
	})
	t.Run("hubs", func(t *testing.T) {
		assert.Equal(t, []string{"connector/toyconnector.shared"}, groupsOf(hubs(module)), "neither an interval nor a type without one counts")
	})
	t.Run("retries", func(t *testing.T) {
		got := retries(module)
		assert.Equal(t, []string{"receiver/toyreceiver.sender", "receiver/toyreceiver.untilTaken"}, groupsOf(got),
			"neither a loop that waits for a source, nor one that gives each of a list once counts")
		assert.Equal(t, "receiver/toyreceiver/retries.go:12", got[0].place)
	})
	t.Run("upward", func(t *testing.T) {
		assert.ElementsMatch(t, []string{
			"internal/report -> internal/engine", "internal/engine/deep -> receiver/toyreceiver",
		}, groupsOf(upward(module)))
	})
}

func TestReasonsOf_NoReason_NamesLine(t *testing.T) {
	got, err := reasonsOf("# why\ninternal/a.T.f scratch of one call\n\n", "package.Type.field")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"internal/a.T.f": "scratch of one call"}, got)
	got, err = reasonsOf("internal/a.f T.files  goes with its file\ninternal/a.f T.names  as files", "package.function Type.field")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"internal/a.f T.files": "goes with its file", "internal/a.f T.names": "as files"}, got)

	for text, form := range map[string]string{
		"internal/a.T.f": "package.Type.field", "field reason": "package.Type.field", "internal/a.f reason": "package.Type.field",
		"internal/a.f files reason": "package.function Type.field", "internal/a.f": "package.function Type.field", "f files reason": "package.function Type.field",
	} {
		_, err := reasonsOf("\n"+text, form)
		require.ErrorContains(t, err, "read line 2", text)
	}
}

// The folder has no module, so that counting it fails.
func TestRun_UnknownBase_RefusedBeforeTreeIsRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, git(t.Context(), dir, "init", "--quiet"))
	t.Chdir(dir)
	require.ErrorContains(t, run(t.Context(), nil, io.Discard, io.Discard), "list packages")
	require.ErrorContains(t, run(t.Context(), []string{"-base", "nosuch"}, io.Discard, io.Discard), `find base "nosuch"`)
}

func TestLines_EachKind_IsCountedApart(t *testing.T) {
	var n lines
	n.add("a.go", []byte("package a\n\n// Code generated files begin otherwise.\n"))
	n.add("a_test.go", []byte("package a\n"))
	n.add("connector/c.go", []byte("package c\n"))
	n.add("receiver/r.go", []byte("package r\n\n"))
	n.add("b.go", []byte("// Code generated by mdatagen. DO NOT EDIT.\n\npackage a\n"))
	n.add("b_test.go", []byte("// Code generated by mdatagen. DO NOT EDIT.\n"))

	assert.Equal(t, lines{written: 6, connectors: 1, receivers: 2, tests: 1, generated: 4}, n)
}

// The tree has one life cycle, one parse of evidence, one place for quantiles, a limit or a reason for each map, and a
// reason for each eviction by hand.
func TestTree_NothingIsOutsideOfItsPlace(t *testing.T) {
	if !tier.Full(t) {
		t.Skip("it takes ten seconds: the full tier runs it")
	}
	why, err := readReasons()
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	c, err := take(t.Context(), root, why)
	require.NoError(t, err)
	assert.Empty(t, c.lives)
	assert.Empty(t, c.parses)
	assert.Empty(t, only(c.quantiles, ofProduct))
	assert.Empty(t, c.maps.unlimited, "give the map a limit, or a reason in maps.txt")
	assert.Empty(t, c.maps.unused, "entries of maps.txt")
	assert.Empty(t, c.evictions.unexplained, "use a bounded.Map, or give the reason in evictions.txt")
	assert.Empty(t, c.evictions.unused, "entries of evictions.txt")
	assert.Len(t, c.hubs, 1)
	assert.Len(t, c.retries, 1)
	assert.Empty(t, c.upward)
}
