// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// item is an item of a DCP save.
type item struct {
	file           string
	offset, length int64
}

func pickleText(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func pickleInt(n int64) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// metadata is a .metadata of DCP with these items.
func metadata(items ...item) *fstest.MapFile { return named("optimizer.layer", items) }

// commonMetadata is one of Megatron's, with what it keeps for all ranks and its random states among the items.
func commonMetadata(items ...item) *fstest.MapFile {
	return fqns([]string{"common_state/optimizer", "rng_state/shard_0_1"}, items)
}

// named has, as state, the items, and what else is given: pickled keys and values.
func named(prefix string, items []item, more ...string) *fstest.MapFile {
	const module = "torch.distributed.checkpoint.metadata\n"
	var b strings.Builder
	b.WriteString("\x80\x02c" + module + "Metadata\n)\x81}(" + pickleText("storage_data") + "}(")
	for i, it := range items {
		b.WriteString("c" + module + "MetadataIndex\n)\x81}(" + pickleText("fqn") + pickleText(fmt.Sprint(prefix, i)) + "ub")
		b.WriteString("ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81}(" +
			pickleText("relative_path") + pickleText(it.file) + pickleText("offset") + pickleInt(it.offset) + pickleText("length") + pickleInt(it.length) + "ub")
	}
	b.WriteString("u" + pickleText("state_dict_metadata") + "}(")
	for i := range items {
		b.WriteString(pickleText(fmt.Sprint(prefix, i)) + "c" + module + "BytesStorageMetadata\n)\x81")
	}
	b.WriteString(strings.Join(more, "") + "uub.")
	return &fstest.MapFile{Data: []byte(b.String()), ModTime: time.Unix(100, 0)}
}

func safe(t *testing.T, fsys fs.FS, o ckpt.Options) (*preflight.Result, bool) {
	t.Helper()
	r := preflight.Judge([]preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), fsys, o)}}, model.Optional[int64]{})
	return r, r.OK()
}

func shard(n int) *fstest.MapFile {
	return &fstest.MapFile{Data: bytes.Repeat([]byte("x"), n), ModTime: time.Unix(99, 0)} // of another serialization than torch.save
}

// TestMetadataOfWhatever: the control is confirmed, and nothing else.
func TestMetadataOfWhatever(t *testing.T) {
	good := fstest.MapFS{"step-7/.metadata": metadata(item{"__0_0.distcp", 0, 100}), "step-7/__0_0.distcp": shard(100)}
	r, ok := safe(t, good, ckpt.Options{})
	require.True(t, ok, r.Why)
	for name, tc := range map[string]struct {
		item item
		want string // in a problem
	}{
		"out of the folder":         {item{"../../etc/passwd", 0, 1}, "want one in the folder of the save"},
		"an absolute path":          {item{"/etc/passwd", 0, 1}, "want one in the folder of the save"},
		"the parent":                {item{"..", 0, 0}, "want one in the folder of the save"},
		"nothing":                   {item{"", 0, 0}, "got a folder"},
		"a folder":                  {item{"sub", 0, 1}, "got a folder; want a regular file"},
		"a file that is not there":  {item{"__9_0.distcp", 0, 1}, "got no such file"},
		"more than the file holds":  {item{"__0_0.distcp", 50, 51}, "got 100 bytes; want at least 101"},
		"an offset below 0":         {item{"__0_0.distcp", -1, 1}, "want none below 0"},
		"a sum that overflows":      {item{"__0_0.distcp", math.MaxInt64, 1}, "want none below 0"},
		"control characters in it":  {item{"\x1b[31m\n", 0, 1}, "got no such file"},
		"a name of a million bytes": {item{strings.Repeat("a/", 500_000), 0, 1}, "got"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"step-7/.metadata": metadata(tc.item), "step-7/__0_0.distcp": shard(100), "step-7/sub/x": shard(1)}
			r, ok := safe(t, fsys, ckpt.Options{})
			require.False(t, ok)
			var all strings.Builder
			for _, s := range r.Saves {
				for _, p := range s.Problems {
					fmt.Fprintln(&all, p.What)
				}
			}
			require.Contains(t, all.String(), tc.want)
		})
	}
}

// TestMetadataThatWasNotRenamed: somebody saves over this save, or was cut off while it did.
func TestMetadataThatWasNotRenamed(t *testing.T) {
	fsys := fstest.MapFS{"step-7/.metadata": metadata(item{"__0_0.distcp", 0, 100}), "step-7/__0_0.distcp": shard(100), "step-7/.metadata.tmp": shard(10)}
	r, ok := safe(t, fsys, ckpt.Options{})
	require.False(t, ok)
	require.Equal(t, ckpt.CheckUnfinished, r.Judged.Problems[0].Check)
}

func TestMetadataThatIsNone(t *testing.T) {
	for name, data := range map[string]string{
		"empty":               "",
		"text":                "hello",
		"another value":       "\x80\x02N.",
		"another class":       "\x80\x02cos\nsystem\n)\x81}b.",
		"a call":              "\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
		"no storage":          "\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}b.",
		"cut off":             string(metadata(item{"__0_0.distcp", 0, 1}).Data[:80]),
		"a list of itself":    "\x80\x02]q\x00h\x00a.",
		"an object in a ring": "\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81q\x00}" + pickleText("storage_data") + "h\x00sb.",
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"step-7/.metadata": {Data: []byte(data), ModTime: time.Unix(100, 0)}, "step-7/__0_0.distcp": shard(100)}
			_, ok := safe(t, fsys, ckpt.Options{})
			require.False(t, ok)
		})
	}
}

// TestLimitsConfirmNothing: what is beyond a limit is counted, and its save is in doubt.
func TestLimitsConfirmNothing(t *testing.T) {
	var items []item
	fsys := fstest.MapFS{}
	for i := range 50 {
		items = append(items, item{fmt.Sprintf("__%d_0.distcp", i), 0, 100})
		fsys["step-7/"+items[i].file] = shard(100)
	}
	fsys["step-7/.metadata"] = metadata(items...)
	r, ok := safe(t, fsys, ckpt.Options{})
	require.True(t, ok, r.Why)
	for name, l := range map[string]ckpt.Limits{
		"entries": {Entries: 20}, "domains": {Domains: 20}, "the pickle": {Pickle: pickle.Limits{Bytes: 200}}, "its values": {Pickle: pickle.Limits{Values: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := safe(t, fsys, ckpt.Options{Limits: l})
			require.False(t, ok)
			require.NotEmpty(t, r.Why)
		})
	}
	for i := range 50 {
		delete(fsys, "step-7/"+items[i].file)
	}
	root := ckpt.Read(t.Context(), fsys, ckpt.Options{Limits: ckpt.Limits{Problems: 5}})
	require.Len(t, root.Saves[0].Problems, 5)
	require.EqualValues(t, 45, root.Counts.ProblemsLost)
}

func TestSavesBeyondTheLimit(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 10 {
		fsys[fmt.Sprintf("step-%d/.metadata", i)] = metadata(item{"__0_0.distcp", 0, 100})
		fsys[fmt.Sprintf("step-%d/__0_0.distcp", i)] = shard(100)
	}
	root := ckpt.Read(t.Context(), fsys, ckpt.Options{Limits: ckpt.Limits{Saves: 3}})
	require.Len(t, root.Saves, 3)
	require.EqualValues(t, 7, root.Saves[0].Epoch.V, "the newest stay")
	require.EqualValues(t, 7, root.Counts.SavesLeftOut)
	require.EqualValues(t, 9, root.Resumes[0].Epoch.V)
}

func TestTrackersOfWhatever(t *testing.T) {
	megatron := func(text string) fstest.MapFS {
		return fstest.MapFS{
			"latest_checkpointed_iteration.txt": {Data: []byte(text)},
			"iter_0000007/.metadata":            commonMetadata(item{"__0_0.distcp", 0, 50}, item{"__0_0.distcp", 50, 50}),
			"iter_0000007/__0_0.distcp":         shard(100),
			"iter_0000007/metadata.json":        {Data: []byte(`{"sharded_backend": "torch_dist"}`)},
		}
	}
	r, ok := safe(t, megatron("7\n"), ckpt.Options{})
	require.True(t, ok, r.Why)
	for _, text := range []string{"", " ", "abc", "-7", "7e0", "7000000000000000000000", "../iter_0000007", "\xff\xfe", "7\x00", "release", "6", "8", strings.Repeat("7", 5000)} {
		r, ok := safe(t, megatron(text), ckpt.Options{})
		require.False(t, ok, "%q", text)
		require.NotEmpty(t, r.Why)
	}
	r, ok = safe(t, fstest.MapFS{"latest": {Data: []byte("../../elsewhere")}, "global_step1/mp_rank_00_model_states.pt": shard(10)}, ckpt.Options{})
	require.False(t, ok)
	require.Equal(t, `a resume would find no save: latest holds "../../elsewhere"; want one line with the name of a tag that is there`, r.Why)
}

// TestReadingEnds where its caller has had enough.
func TestReadingEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := ckpt.Read(ctx, fstest.MapFS{"step-7/.metadata": metadata(item{"__0_0.distcp", 0, 100})}, ckpt.Options{})
	require.Empty(t, root.Saves)
	require.NotEmpty(t, root.Problems)
}
