// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// dcpItem is one item of a DCP save: where its bytes lie.
type dcpItem struct {
	fqn            string
	file           string // relative to the save
	offset, length int64
	transformed    bool // compressed or otherwise changed, so that it is no file of torch.save
}

// failed says of an error which item it is of.
func (it *dcpItem) failed(err error) error {
	return fmt.Errorf("item %s at offset %d: %w", quote(it.fqn), it.offset, err)
}

// dcpItems reads storage_data out of a .metadata: a dict of
// torch.distributed.checkpoint.metadata.MetadataIndex to
// torch.distributed.checkpoint.filesystem._StorageInfo; and where the save was written to, as savedTo does.
func (s *scan) dcpItems(data []byte) (items []dcpItem, saved []string, err error) {
	m := pickle.NewMachine(data, pickle.Inert, s.opt.Limits.Pickle)
	root, err := m.Run()
	if err != nil {
		return nil, nil, err
	}
	if !m.Is(root, "torch.distributed.checkpoint.metadata", "Metadata") {
		return nil, nil, errors.New("got another value; want torch.distributed.checkpoint.metadata.Metadata")
	}
	storage, ok := m.Get(root, "storage_data")
	if !ok || storage.Kind() != pickle.Dict {
		return nil, nil, errors.New("got no dict storage_data; want one")
	}
	pairs := m.Items(storage)
	if len(pairs) == 0 {
		return nil, nil, errors.New("got no item in storage_data; want at least one")
	}
	items = make([]dcpItem, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		item, err := dcpItemOf(m, pairs[i], pairs[i+1])
		if err != nil {
			return nil, nil, fmt.Errorf("read storage_data, item %d: %w", i/2, err)
		}
		items = append(items, item)
	}
	return items, savedTo(m, root), unstored(m, root, items)
}

// unstored reports a key of state_dict_metadata of which nothing is stored: a loader that asks for it
// fails. Of a tensor without elements nothing need be.
func unstored(m *pickle.Machine, root pickle.Value, items []dcpItem) error {
	stored := make(map[string]bool, len(items))
	for i := range items {
		stored[items[i].fqn] = true
	}
	state, _ := m.Get(root, "state_dict_metadata")
	if state.Kind() != pickle.Dict {
		return errors.New("got no dict state_dict_metadata; want one")
	}
	pairs := m.Items(state)
	for i := 0; i+1 < len(pairs); i += 2 {
		if key := m.Text(pairs[i]); !stored[string(key)] && !isEmptyTensor(m, pairs[i+1]) {
			return fmt.Errorf("got no item of %s in storage_data; want one", quote(string(key)))
		}
	}
	return nil
}

// isEmptyTensor reports whether a TensorStorageMetadata is of a size, a call of torch.Size with a tuple,
// of which a dimension is 0.
func isEmptyTensor(m *pickle.Machine, of pickle.Value) bool {
	size, ok := m.Get(of, "size")
	if !ok || size.Kind() != pickle.Object {
		return false
	}
	args := m.Args(size)
	return len(args) == 1 && slices.ContainsFunc(m.Items(args[0]), func(n pickle.Value) bool { return n.Kind() == pickle.Int && n.Int() == 0 })
}

func dcpItemOf(m *pickle.Machine, key, info pickle.Value) (dcpItem, error) {
	var item dcpItem
	fqn, _ := m.Get(key, "fqn")
	item.fqn = string(m.Text(fqn))
	name, ok := m.Get(info, "relative_path")
	if !ok || name.Kind() != pickle.String {
		return item, errors.New("got no relative_path; want the name of a file")
	}
	item.file = string(m.Text(name))
	if !path.IsAbs(item.file) {
		item.file = path.Clean(item.file)
	}
	offset, ok1 := m.Get(info, "offset")
	length, ok2 := m.Get(info, "length")
	if !ok1 || !ok2 || offset.Kind() != pickle.Int || length.Kind() != pickle.Int {
		return item, errors.New("got no offset and length; want both")
	}
	item.offset, item.length = offset.Int(), length.Int()
	if item.offset < 0 || item.length < 0 || item.offset+item.length < 0 {
		return item, fmt.Errorf("got offset %d and length %d; want none below 0", item.offset, item.length)
	}
	if t, ok := m.Get(info, "transform_descriptors"); ok && t.Kind() != pickle.None {
		item.transformed = true
	}
	return item, nil
}
