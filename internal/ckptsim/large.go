// SPDX-License-Identifier: Apache-2.0

package ckptsim

import "fmt"

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
