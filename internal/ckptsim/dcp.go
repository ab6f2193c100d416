// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"path"
)

const (
	dcpModule  = "torch.distributed.checkpoint.metadata"
	dcpStorage = "torch.distributed.checkpoint.filesystem"
)

// dcpItem is an item of a DCP save: a tensor, or a value.
type dcpItem struct {
	fqn    string
	value  any // a tensor, or what else torch.save takes
	offset int
	length int
	// transforms are what the bytes went through; nil for none.
	transforms list
}

// dcpShard lays items out in one file, each a file of torch.save of its own.
func dcpShard(items []dcpItem) []byte {
	var b []byte
	for i := range items {
		blob := torchSaved(items[i].value)
		items[i].offset, items[i].length = len(b), len(blob)
		b = append(b, blob...)
	}
	return b
}

// dcpRankItems are the items that a rank writes; rank 0 also writes what is the same on all.
func dcpRankItems(epoch int64, rank int, common ...dcpItem) []dcpItem {
	var items []dcpItem
	if rank == 0 {
		items = append(items, common...)
	}
	for _, fqn := range []string{"model.layers.0.weight", "model.layers.1.weight", "optimizer.state.layers.0.weight.exp_avg"} {
		items = append(items, dcpItem{fqn: fqn, value: weights(24, epoch, fmt.Sprint(fqn, "@", rank))})
	}
	return append(items, dcpItem{fqn: fmt.Sprintf("dataloader.dp_rank_%d", rank), value: dict{"cursor", 16*epoch + int64(rank)}})
}

// dcpMetadata is a .metadata of items by file. Its save_id is another one for each save.
func dcpMetadata(files []string, items [][]dcpItem, saveID string) []byte {
	var state, storage dict
	size := func(n int) call { return call{global{"torch", "Size"}, tuple{tuple{n}}} }
	seen := map[string]bool{}
	for f, name := range files {
		for _, it := range items[f] {
			var offset any
			if t, ok := it.value.(tensor); ok {
				offset = size(len(t) * f)
				if !seen[it.fqn] {
					state = append(state, it.fqn, tensorMetadata(len(t)*len(files), size))
				}
			} else {
				state = append(state, it.fqn, object{global{dcpModule, "BytesStorageMetadata"}, dict{}})
			}
			seen[it.fqn] = true
			info := dict{"relative_path", name, "offset", it.offset, "length", it.length}
			if it.transforms != nil {
				info = append(info, "transform_descriptors", it.transforms)
			}
			storage = append(storage,
				object{global{dcpModule, "MetadataIndex"}, dict{"fqn", it.fqn, "index", 0, "offset", offset}},
				object{global{dcpStorage, "_StorageInfo"}, info})
		}
	}
	return pickled(object{global{dcpModule, "Metadata"}, dict{
		"state_dict_metadata", state,
		"planner_data", nil,
		"storage_data", storage,
		"storage_meta",
		object{global{dcpModule, "StorageMeta"}, dict{"checkpoint_id", nil, "save_id", saveID, "load_id", nil, "modules", list{}}},
		"version", "1.0.0",
	}}, 4)
}

func tensorMetadata(n int, size func(int) call) object {
	format := call{global{dcpModule, "_MEM_FORMAT_ENCODING"}, tuple{0}}
	return object{global{dcpModule, "TensorStorageMetadata"}, dict{
		"properties",
		object{global{dcpModule, "TensorProperties"}, tuple{global{"torch", "float32"}, call{global{"torch.serialization", "_get_layout"}, tuple{"torch.strided"}}, false, format, false, tuple{1}}},
		"size", size(n),
		"chunks",
		list{object{global{dcpModule, "ChunkStorageMetadata"}, dict{"offsets", size(0), "sizes", size(n)}}},
	}}
}

// dcp writes the shards of all ranks and then, on rank 0, .metadata: FileSystemWriter with
// sync_files and overwrite, as they are by default.
func (s *Save) dcp(common ...dcpItem) {
	s.rank(0).mkdir(s.Dir)
	s.barrier()
	files := make([]string, len(s.Ranks))
	items := make([][]dcpItem, len(s.Ranks))
	s.each(func(r rank) {
		files[r.n] = fmt.Sprintf("__%d_0.distcp", r.n)
		items[r.n] = dcpRankItems(s.seed(), r.n, common...)
		r.synced(path.Join(s.Dir, files[r.n]), dcpShard(items[r.n]))
	})
	s.barrier()
	s.rank(0).dcpFinish(".metadata", dcpMetadata(files, items, fmt.Sprintf("save-%d", s.seed())))
	s.barrier()
}

// dcpFinish replaces a metadata file: temporary, synced, the old one removed, renamed.
func (r rank) dcpFinish(name string, data []byte) {
	name = path.Join(r.save.Dir, name)
	r.scratch(name+".tmp", data)
	r.fsync(name + ".tmp")
	r.do(Op{Kind: Remove, Path: name, Maybe: true})
	r.rename(name+".tmp", name)
	r.save.Files[name] = data
	r.save.Gone = append(r.save.Gone, name+".tmp")
}

// dcpLocal writes a shard and a metadata file for each rank, and no rank waits for another:
// use_collectives=False.
func (s *Save) dcpLocal(common ...dcpItem) {
	s.each(func(r rank) {
		r.mkdir(s.Dir)
		file := fmt.Sprintf("__%d_0.distcp", r.n)
		items := dcpRankItems(s.seed(), r.n, common...)
		if r.n > 0 {
			items = append(items, common...)
		}
		r.synced(path.Join(s.Dir, file), dcpShard(items))
		r.dcpFinish(fmt.Sprintf("__%d.metadata", r.n), dcpMetadata([]string{file}, [][]dcpItem{items}, fmt.Sprintf("save-%d-%d", s.seed(), r.n)))
	})
}
