// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"strings"
)

// LargeMetadata returns a .metadata of DCP for a model of so many tensors, each in a part on
// every rank, and the files that it names.
func LargeMetadata(tensors, ranks int) (data []byte, files []string) {
	items := make([][]dcpItem, ranks)
	for r := range ranks {
		files = append(files, fmt.Sprintf("__%d_0.distcp", r))
		for t := range tensors {
			items[r] = append(items[r], dcpItem{fqn: fmt.Sprintf("model.layers.%d.weight", t), value: tensor{}, offset: 1024 * t, length: 1024})
		}
	}
	items[0] = append(items[0], dcpItem{fqn: "step", value: int64(100), offset: 1024 * tensors, length: 1024})
	return dcpMetadata(files, items, "large"), files
}

// RawDCP returns the shard "__0_0.distcp" of a DCP save whose items are tensors that are not files of
// torch.save, as of another serialization format or behind transforms such as "zstd", and its .metadata.
func RawDCP(tensors [][]byte, transforms ...string) (metadata, shard []byte) {
	var items []dcpItem
	for i, data := range tensors {
		it := dcpItem{fqn: fmt.Sprintf("optimizer.state.layers.%d.exp_avg", i), value: make(tensor, 12), offset: len(shard), length: len(data)}
		for _, t := range transforms {
			it.transforms = append(it.transforms, t)
		}
		items = append(items, it)
		shard = append(shard, data...)
	}
	return dcpMetadata([]string{"__0_0.distcp"}, [][]dcpItem{items}, "raw"), shard
}

// DCPOf returns the files of a DCP save that so many ranks made, with an item of each name: a tensor of which
// each rank has a part, or where the name ends in "step" the step, which rank 0 has.
func DCPOf(step int64, ranks int, names ...string) map[string][]byte {
	files := make([]string, ranks)
	items := make([][]dcpItem, ranks)
	out := map[string][]byte{}
	for r := range ranks {
		files[r] = fmt.Sprintf("__%d_0.distcp", r)
		for _, name := range names {
			switch {
			case !strings.HasSuffix(name, "step"):
				items[r] = append(items[r], dcpItem{fqn: name, value: weights(24, step, fmt.Sprint(name, "@", r))})
			case r == 0:
				items[r] = append(items[r], dcpItem{fqn: name, value: step})
			}
		}
		out[files[r]] = dcpShard(items[r])
	}
	out[".metadata"] = dcpMetadata(files, items, fmt.Sprint("save-", step))
	return out
}
