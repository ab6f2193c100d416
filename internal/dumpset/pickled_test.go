// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// pickledForms are the ways in which a script gathers dumps by pickle.dump.
func pickledForms(t *testing.T, dumps []*frwrite.Dump) map[string]any {
	t.Helper()
	forms := map[string]any{}
	each := func(name string, of func(r int, d *frwrite.Dump) frwrite.Pair) {
		var pairs []frwrite.Pair
		for r, d := range dumps {
			pairs = append(pairs, of(r, d))
		}
		forms[name] = pairs
	}
	list := func(name string, of func(r int, d *frwrite.Dump) any) {
		var all []any
		for r, d := range dumps {
			all = append(all, of(r, d))
		}
		forms[name] = all
	}
	each("a dictionary by int", func(r int, d *frwrite.Dump) frwrite.Pair { return frwrite.Pair{Key: r, Value: asJSON(t, d, nil)} })
	each("a dictionary by text", func(r int, d *frwrite.Dump) frwrite.Pair {
		return frwrite.Pair{Key: fmt.Sprint(r), Value: asJSON(t, d, nil)}
	})
	each("a dictionary by name", func(r int, d *frwrite.Dump) frwrite.Pair {
		return frwrite.Pair{Key: fmt.Sprint("rank_", r), Value: asJSON(t, d, nil)}
	})
	each("bytes of pickles", func(r int, d *frwrite.Dump) frwrite.Pair { return frwrite.Pair{Key: r, Value: frwrite.Pickle(d)} })
	each("bytes of JSON", func(r int, d *frwrite.Dump) frwrite.Pair { return frwrite.Pair{Key: r, Value: frwrite.JSON(d)} })
	each("texts of JSON", func(r int, d *frwrite.Dump) frwrite.Pair {
		return frwrite.Pair{Key: r, Value: string(frwrite.JSON(d))}
	})
	each("wrappers by name", func(r int, d *frwrite.Dump) frwrite.Pair {
		return frwrite.Pair{Key: "pod-" + "abcdefgh"[r:r+1], Value: wrapped(t, r, d)}
	})
	list("a list of wrappers", func(r int, d *frwrite.Dump) any { return wrapped(t, r, d) })
	list("a list of wrapped bytes", func(r int, d *frwrite.Dump) any {
		return []frwrite.Pair{{Key: "global_rank", Value: fmt.Sprint(r)}, {Key: "dump", Value: frwrite.Pickle(d)}}
	})
	list("a list with the rank inside", func(r int, d *frwrite.Dump) any { return asJSON(t, d, map[string]any{"rank": r}) })
	forms["under a name"] = []frwrite.Pair{{Key: "job", Value: "x"}, {Key: "world_size", Value: len(dumps)}, {Key: "ranks", Value: forms["a dictionary by int"]}}
	return forms
}

// Dumps that somebody gathered in a pickle are those of their ranks.
func TestRead_GatheredPickle_IsReadByRank(t *testing.T) {
	for name, form := range pickledForms(t, world(8, 0)) {
		for _, protocol := range []int{2, 3, 4, 5} {
			if protocol == 2 && strings.Contains(name, "bytes") {
				continue // Python writes them as a call
			}
			t.Run(fmt.Sprint(name, " ", protocol), func(t *testing.T) {
				path := put(t, filepath.Join(t.TempDir(), "all.pkl"), frwrite.Python(protocol, form))
				r := Read(context.Background(), []string{path}, Options{})
				require.NotEmpty(t, r.Hangs, problemsOf(r))
				require.NotEmpty(t, r.Hangs[0].Roots, problemsOf(r))
				namesRank2(t, &r.Hangs[0])
				assert.Equal(t, 8, r.Hangs[0].Ranks, problemsOf(r))
				assert.Empty(t, problemsOf(r))
			})
		}
	}
}

// A wrapper in a pickle, one file a rank, names rank and host.
func TestRead_PickledWrapperPerFile_NamesHost(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for r, d := range world(4, 0) {
		paths = append(paths, put(t, filepath.Join(dir, fmt.Sprintf("dump-%c.pkl", 'a'+r)), frwrite.Python(4, wrapped(t, r, d))))
	}
	r := Read(context.Background(), paths, Options{})
	require.NotEmpty(t, r.Hangs[0].Roots, problemsOf(r))
	assert.Equal(t, "n2", r.Hangs[0].Roots[0].Finding.Host)
}

// Of a gathered pickle that is cut off what is whole counts.
func TestRead_CutGatheredPickle_KeepsWholeDumps(t *testing.T) {
	var pairs []frwrite.Pair
	for r, d := range world(4, 0) {
		pairs = append(pairs, frwrite.Pair{Key: r, Value: asJSON(t, d, nil)})
	}
	whole := frwrite.Python(2, pairs)
	path := put(t, filepath.Join(t.TempDir(), "all.pkl"), whole[:len(whole)*9/10])
	r := Read(context.Background(), []string{path}, Options{})
	require.NotEmpty(t, r.Hangs, problemsOf(r))
	assert.GreaterOrEqual(t, r.Hangs[0].Ranks, 3, problemsOf(r))
	assert.Contains(t, problemsOf(r), "cut off")
}

// What needs code is refused, and the problem says how to write it.
func TestRead_GatheredPickleNeedsCode_SaysHowToWriteIt(t *testing.T) {
	d := world(2, 0)[0]
	for name, in := range map[string][]byte{
		"bytes in protocol 2":     frwrite.Python(2, []frwrite.Pair{{Key: 0, Value: frwrite.Pickle(d)}, {Key: 1, Value: frwrite.Pickle(d)}}),
		"bytearray in protocol 4": frwrite.Python(4, []frwrite.Pair{{Key: 0, Value: frwrite.ByteArray(frwrite.Pickle(d))}}),
		"bytearray in protocol 5": frwrite.Python(5, []frwrite.Pair{{Key: 0, Value: frwrite.ByteArray(frwrite.Pickle(d))}}),
		"an object in between":    []byte("\x80\x02}q\x00(K\x00}q\x01X\x07\x00\x00\x00versionq\x02csystem\nx\nq\x03su."),
		"protocol 1":              []byte("\x80\x01}q\x00."),
	} {
		t.Run(name, func(t *testing.T) {
			path := put(t, filepath.Join(t.TempDir(), "all.pkl"), in)
			r := Read(context.Background(), []string{path}, Options{})
			assert.Contains(t, problemsOf(r), "write the dumps of several ranks as JSON lines or as one file per rank")
			assert.Empty(t, r.Hangs)
		})
	}
}
