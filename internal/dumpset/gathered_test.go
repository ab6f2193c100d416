// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// asJSON is the JSON of a dump with further members in front.
func asJSON(t *testing.T, d *frwrite.Dump, more map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	in := json.NewDecoder(bytes.NewReader(frwrite.JSON(d)))
	in.UseNumber() // times have more digits than a float64
	require.NoError(t, in.Decode(&out))
	for k, v := range more {
		out[k] = v
	}
	return out
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// wrapped is a dump among the rank and the host.
func wrapped(t *testing.T, rank int, d *frwrite.Dump) map[string]any {
	t.Helper()
	return map[string]any{"rank": rank, "host": fmt.Sprint("n", rank), "ok": true, "dump": asJSON(t, d, nil)}
}

// Dumps that somebody gathered are those of their ranks, in whatever form.
func TestRead_GatheredDumps_AreThoseOfTheirRanks(t *testing.T) {
	dumps := world(8, 0)
	oneFile := func(content func(r int, d *frwrite.Dump) (string, any)) map[string][]byte {
		all := map[string]any{}
		for r, d := range dumps {
			k, v := content(r, d)
			all[k] = v
		}
		return map[string][]byte{"all.json": marshal(t, all)}
	}
	eachFile := func(name string, content func(r int, d *frwrite.Dump) []byte) map[string][]byte {
		out := map[string][]byte{}
		for r, d := range dumps {
			out[fmt.Sprintf(name, r)] = content(r, d)
		}
		return out
	}
	lines := func(value func(r int, d *frwrite.Dump) []byte) map[string][]byte {
		var b bytes.Buffer
		for r, d := range dumps {
			b.Write(append(value(r, d), '\n'))
		}
		return map[string][]byte{"dumps.jsonl": b.Bytes()}
	}
	var list []any
	for r, d := range dumps {
		list = append(list, wrapped(t, r, d))
	}
	letters := "abcdefgh"
	for name, files := range map[string]map[string][]byte{
		"a dictionary of ranks": oneFile(func(r int, d *frwrite.Dump) (string, any) { return fmt.Sprint(r), asJSON(t, d, nil) }),
		"named rank_N": oneFile(func(r int, d *frwrite.Dump) (string, any) {
			return fmt.Sprint("nccl_trace_rank_", r), asJSON(t, d, nil)
		}),
		"a dictionary of wrappers": oneFile(func(r int, d *frwrite.Dump) (string, any) {
			return fmt.Sprint("pod-", letters[r:r+1]), wrapped(t, r, d)
		}),
		"a dictionary of texts": oneFile(func(r int, d *frwrite.Dump) (string, any) { return fmt.Sprint(r), string(frwrite.JSON(d)) }),
		"a dictionary of pickles": oneFile(func(r int, d *frwrite.Dump) (string, any) {
			return fmt.Sprint(r), base64.StdEncoding.EncodeToString(frwrite.Pickle(d))
		}),
		"a list of wrappers":         {"all.json": marshal(t, list)},
		"a list under a name":        {"all.json": marshal(t, map[string]any{"job": "x", "ranks": list})},
		"lines of wrappers":          lines(func(r int, d *frwrite.Dump) []byte { return marshal(t, wrapped(t, r, d)) }),
		"lines with the rank inside": lines(func(r int, d *frwrite.Dump) []byte { return marshal(t, asJSON(t, d, map[string]any{"rank": r})) }),
		"a wrapper a file":           eachFile("rank_%d.json", func(r int, d *frwrite.Dump) []byte { return marshal(t, wrapped(t, r, d)) }),
		"a wrapper, the name says it": eachFile("rank_%d.json", func(_ int, d *frwrite.Dump) []byte {
			return marshal(t, map[string]any{"ok": true, "data": asJSON(t, d, nil)})
		}),
		"the rank inside": eachFile("fr-%da.json", func(r int, d *frwrite.Dump) []byte {
			return marshal(t, asJSON(t, d, map[string]any{"rank": r, "hostname": "n2"}))
		}),
		"a text a file":    eachFile("rank_%d.json", func(_ int, d *frwrite.Dump) []byte { return marshal(t, string(frwrite.JSON(d))) }),
		"a text of a text": eachFile("rank_%d.json", func(_ int, d *frwrite.Dump) []byte { return marshal(t, string(marshal(t, string(frwrite.JSON(d))))) }),
		"a wrapper of a text": eachFile("%dx.json", func(r int, d *frwrite.Dump) []byte {
			return marshal(t, map[string]any{"global_rank": fmt.Sprint(r), "trace": string(frwrite.JSON(d))})
		}),
		"the name says another number": eachFile("part7%d", func(r int, d *frwrite.Dump) []byte { return marshal(t, wrapped(t, r, d)) }),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var plain, packed, zipped []string
			for file, content := range files {
				plain = append(plain, put(t, filepath.Join(dir, file), content))
				packed = append(packed, put(t, filepath.Join(dir, file+".gz"), gzipped(t, content)))
				zipped = append(zipped, put(t, filepath.Join(dir, file+".zst"), zstded(t, content)))
			}
			for _, paths := range [][]string{plain, packed, zipped} {
				r := Read(context.Background(), paths, Options{})
				require.NotEmpty(t, r.Hangs, problemsOf(r))
				require.NotEmpty(t, r.Hangs[0].Roots, "%s %s %v", problemsOf(r), r.Hangs[0].MayRun, r.Hangs[0].Problems)
				namesRank2(t, &r.Hangs[0])
				assert.Equal(t, 8, r.Hangs[0].Ranks, problemsOf(r))
			}
		})
	}
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func zstded(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	_, err = z.Write(content)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// The host of a wrapper is that of the rank.
func TestRead_Wrapper_TellsTheHost(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for r, d := range world(4, 0) {
		paths = append(paths, put(t, filepath.Join(dir, fmt.Sprintf("rank_%d.json", r)), marshal(t, wrapped(t, r, d))))
	}
	r := Read(context.Background(), paths, Options{})
	require.NotEmpty(t, r.Hangs[0].Roots)
	assert.Equal(t, "n2", r.Hangs[0].Roots[0].Finding.Host)
}

// Of a gathered file that is damaged what is whole counts, and the rest is named.
func TestRead_DamagedGathered_KeepsTheOthers(t *testing.T) {
	dumps := world(4, 0)
	var b strings.Builder
	for r, d := range dumps {
		line := string(marshal(t, wrapped(t, r, d)))
		switch r {
		case 1:
			line = strings.Replace(line, `"version":"2.`, `"version":"9.`, 1)
		case 3:
			line = `{"rank":3,"dump":` + string(frwrite.JSON(d))
			line = line[:len(line)*2/3]
		}
		b.WriteString(line + "\n")
	}
	path := put(t, filepath.Join(t.TempDir(), "dumps.jsonl"), []byte(b.String()))
	r := Read(context.Background(), []string{path}, Options{})
	require.NotEmpty(t, r.Hangs)
	assert.Contains(t, problemsOf(r), "dumps.jsonl (2 of 4): read dump: read version")
	assert.Contains(t, problemsOf(r), "cut off")
	assert.Equal(t, 3, r.Hangs[0].Ranks)

	none := put(t, filepath.Join(t.TempDir(), "all.json"), marshal(t, []any{asJSON(t, dumps[0], nil), asJSON(t, dumps[1], nil)}))
	r = Read(context.Background(), []string{none}, Options{})
	assert.Contains(t, problemsOf(r), "find rank of dump")
}

// A rank that the dump says counts more than a file's name.
func TestRead_RankInside_OverrulesTheName(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for r, d := range world(4, 0) {
		paths = append(paths, put(t, filepath.Join(dir, fmt.Sprintf("rank_%d.json", 3-r)), marshal(t, asJSON(t, d, map[string]any{"rank": r}))))
	}
	r := Read(context.Background(), paths, Options{})
	require.NotEmpty(t, r.Hangs[0].Roots)
	assert.Equal(t, model.Some(int64(2)), r.Hangs[0].Roots[0].Finding.Rank)
	assert.Contains(t, problemsOf(r), "its name says")
}
