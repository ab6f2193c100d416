// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"bytes"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
)

// BenchmarkRead reads DCP saves whose shards are there by size alone: 768 tensors on 64 ranks
// are 49,153 items; 16,384 ranks have 8 each.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name           string
		tensors, ranks int
	}{{"49153 items", 768, 64}, {"16384 ranks", 8, 16_384}} {
		b.Run(c.name, func(b *testing.B) {
			data, files := ckptsim.LargeMetadata(c.tensors, c.ranks)
			fsys := fstest.MapFS{".metadata": {Data: data, ModTime: time.Unix(100, 0)}}
			shard := bytes.Repeat([]byte("x"), 1024*(c.tensors+1))
			for _, name := range files {
				fsys[name] = &fstest.MapFile{Data: shard}
			}
			b.ReportAllocs()
			for b.Loop() {
				root := ckpt.Read(b.Context(), fsys, ckpt.Options{})
				require.Len(b, root.Saves, 1)
				require.Len(b, root.Saves[0].Domains, c.ranks+1)
				for _, d := range root.Saves[0].Domains {
					require.EqualValues(b, "committed", d.State)
				}
			}
			b.ReportMetric(float64(len(data))/1e6, "MB-of-metadata")
		})
	}
}
