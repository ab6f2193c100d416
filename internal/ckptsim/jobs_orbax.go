// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"strconv"
	"strings"
)

// orbaxJobs save with Orbax.
func orbaxJobs() []Job {
	return []Job{{Name: "orbax", Format: "orbax", World: 2, make: orbax, dir: func(e int64) string { return strconv.FormatInt(e, 10) }}}
}

// orbax writes under a temporary name: each process its arrays, which TensorStore syncs; then
// process 0 merges their directories, says when, and renames.
func orbax(s *Save) {
	final := s.Dir
	tmp := newSave(s.Epoch, final+".orbax-checkpoint-tmp", len(s.Ranks))
	tmp.Attempt = s.Attempt
	first := tmp.rank(0)
	state := tmp.Dir + "/state"
	for _, dir := range []string{tmp.Dir, state, state + "/array_metadatas", tmp.Dir + "/iter"} {
		first.mkdir(dir)
	}
	first.scratch(tmp.Dir+"/_CHECKPOINT_METADATA", []byte(`{"item_handlers": {"state": "PyTree", "iter": "Grain"}, "metrics": {}, "init_timestamp_nsecs": 1, "commit_timestamp_nsecs": null}`))
	tmp.barrier()
	tmp.each(func(r rank) {
		r.ocdbt(fmt.Sprintf("%s/ocdbt.process_%d", state, r.n))
		r.part(fmt.Sprintf("%s/array_metadatas/process_%d", state, r.n), []byte(`{"array_metadatas": []}`))
		r.part(fmt.Sprintf("%s/iter/process_%d-of-%d.json", tmp.Dir, r.n, len(s.Ranks)), fmt.Appendf(nil, `{"next_index": %d}`, s.Epoch*16+int64(r.n)))
	})
	tmp.barrier()
	first.ocdbt(state, state+"/ocdbt.process_0", state+"/ocdbt.process_1")
	first.part(state+"/_METADATA", []byte(`{"tree_metadata": {}, "use_ocdbt": true, "use_zarr3": false}`))
	first.side(state+"/_sharding", []byte(`{}`)) // says where arrays were, and holds none of them
	first.part(tmp.Dir+"/_CHECKPOINT_METADATA", fmt.Appendf(nil, `{"item_handlers": {"state": "PyTree", "iter": "Grain"}, "metrics": {}, "init_timestamp_nsecs": 1, "commit_timestamp_nsecs": %d}`, s.Epoch))
	first.rename(tmp.Dir, final)
	tmp.barrier()
	s.takeRenamed(tmp, final)
}

// takeRenamed adds what another save does, whose folder ends under another name.
func (s *Save) takeRenamed(tmp *Save, final string) {
	files, side := tmp.Files, tmp.Side
	tmp.Files, tmp.Side = map[string][]byte{}, map[string][]byte{}
	s.take(tmp)
	for name, data := range files {
		s.Files[final+strings.TrimPrefix(name, tmp.Dir)] = data
	}
	for name, data := range side {
		s.Side[final+strings.TrimPrefix(name, tmp.Dir)] = data
	}
}

// ocdbt writes a database of TensorStore: a file with a value and the node that names it, and
// a manifest that names the node; or, where it is of parts, a node that names their values.
func (r rank) ocdbt(dir string, parts ...string) {
	r.mkdir(dir)
	r.mkdir(dir + "/d")
	value := weights(48, r.save.Epoch, dir).bytes()
	file := func(dir string) string {
		return fmt.Sprintf("d/%032x", crc32.ChecksumIEEE(fmt.Append(nil, dir, r.save.Epoch)))
	}
	var data, names []byte
	table := []byte{byte(max(len(parts), 1))}
	var shared, rest, bases, ids, offsets, lengths, kinds []byte
	if len(parts) == 0 {
		data = value
		names, rest, bases = []byte(file(dir)), []byte{byte(len(file(dir)))}, []byte{0}
		ids, offsets, lengths, kinds = []byte{0}, []byte{0}, binary.AppendUvarint(nil, uint64(len(value))), []byte{1}
	}
	for i, part := range parts {
		base := part[len(dir)+1:] + "/"
		names = append(names, base+file(part)...)
		if i > 0 {
			shared = append(shared, 0)
		}
		rest, bases = append(rest, byte(len(base+file(part)))), append(bases, byte(len(base)))
		ids, offsets, kinds = append(ids, byte(i)), append(offsets, 0), append(kinds, 1)
		lengths = binary.AppendUvarint(lengths, uint64(len(value)))
	}
	keys := len(ids)
	table = slices.Concat(table, shared, rest, bases, names)
	node := slices.Concat([]byte{0}, table, []byte{byte(keys)}, make([]byte, keys-1), bytes.Repeat([]byte{1}, keys), bytes.Repeat([]byte{'k'}, keys), lengths, kinds, ids, offsets)
	node = block(0x0cdb20de, node)
	own := file(dir)
	root := slices.Concat([]byte{1, byte(len(own)), 0}, []byte(own), []byte{1, 1, 0, 0},
		binary.AppendUvarint(nil, uint64(len(data))), binary.AppendUvarint(nil, uint64(len(node))), []byte{byte(keys), 0, 0}, make([]byte, 8), []byte{0})
	config := slices.Concat(weights(4, r.save.Epoch, dir+".id").bytes()[:16], []byte{0, 0, 1, 4, 0})
	r.atomic(dir+"/"+own, append(data, node...))
	r.atomic(dir+"/manifest.ocdbt", block(0x0cdb3a2a, append(config, root...)))
}

// block is a body with its header and checksum, not compressed.
func block(magic uint32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)+18))
	b = append(append(b, 0, 0), body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func (r rank) atomic(name string, data []byte) {
	r.scratch(name+".__lock", data)
	r.fsync(name + ".__lock")
	r.rename(name+".__lock", name)
	r.do(Op{Kind: FsyncDir, Path: path.Dir(name)})
	r.save.Files[name] = data
}
