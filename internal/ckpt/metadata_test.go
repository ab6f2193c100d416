// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// Metadata that names nothing commits nothing.
func TestMetadataOfNothing(t *testing.T) {
	_, ok := safe(t, one(metadata()), ckpt.Options{})
	require.False(t, ok)
	_, ok = safe(t, one(metadata(item{"__0_0.distcp", 0, 100})), ckpt.Options{})
	require.True(t, ok)
}

// What the metadata lists, and nobody wrote, is missing; of a tensor without elements nothing is written.
func TestKeysThatWereNotWritten(t *testing.T) {
	items := []item{{"__0_0.distcp", 0, 100}}
	tensor := func(n int64) string {
		return pickleText("lost") + "ctorch.distributed.checkpoint.metadata\nTensorStorageMetadata\n)\x81}" +
			pickleText("size") + "ctorch\nSize\n(" + pickleInt(3) + pickleInt(n) + "t\x85Rsb"
	}
	_, ok := safe(t, one(named("optimizer", items, tensor(0))), ckpt.Options{})
	require.True(t, ok)
	r, ok := safe(t, one(named("optimizer", items, tensor(4))), ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, fmt.Sprint(r.Saves), `got no item of "lost" in storage_data; want one`)
}

// A metadata.json beside DCP is Megatron's where it names a backend, or can not be read; others are an application's own.
func TestMetadataJSONOfOthers(t *testing.T) {
	for text, want := range map[string]ckpt.Format{
		`{"step": 7, "loss": 2.5}`: ckpt.FormatDCP, `{}`: ckpt.FormatDCP, `["a"]`: ckpt.FormatDCP, `{"format": {"sharded_backend": "torch_dist"}}`: ckpt.FormatDCP,
		`{"sharded_backend": "torch_dist"}`: ckpt.FormatMegatronDist, ``: ckpt.FormatMegatronDist, `{"sharded_b`: ckpt.FormatMegatronDist,
	} {
		f := fstest.MapFS{}
		dcpIn(f, "run", "model", "optimizer.state")
		f["run/metadata.json"] = document(text)
		r, ok := safe(t, below(f, "run/"), ckpt.Options{})
		require.NotNil(t, r.Judged, text)
		require.Equal(t, want, r.Judged.Format, text)
		require.False(t, ok && want == ckpt.FormatMegatronDist, text)
		if want == ckpt.FormatDCP {
			require.NotContains(t, told(r), "metadata.json", text)
			require.True(t, ok, text)
		}
	}
}

func one(metadata *fstest.MapFile) fs.FS {
	return fstest.MapFS{"step-7/.metadata": metadata, "step-7/__0_0.distcp": shard(100)}
}
