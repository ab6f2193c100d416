// SPDX-License-Identifier: Apache-2.0

package ocdbt

import "fmt"

// node walks a node and what is below it.
func (w *walker) node(ref place, height int) error {
	if w.nodes++; w.nodes > w.limits.Nodes {
		return fmt.Errorf("walk nodes: got more than %d; want at most that: %w", w.limits.Nodes, ErrLimit)
	}
	if height > maxHeight {
		return fmt.Errorf("walk nodes: got a tree of height %d; want at most %d", height, maxHeight)
	}
	if err := w.tell(ref.Ref); err != nil {
		return err
	}
	b, err := w.read(ref.Ref)
	if err == nil {
		b, err = body(b, nodeMagic)
	}
	if err != nil {
		return fmt.Errorf("read node at %d of %.80q: %w", ref.Offset, ref.File, err)
	}
	children, values, err := entries(b, height, ref.base)
	if err != nil {
		return fmt.Errorf("read node at %d of %.80q: %w", ref.Offset, ref.File, err)
	}
	for _, v := range values {
		if err := w.tell(v.Ref); err != nil {
			return err
		}
	}
	for _, c := range children {
		if err := w.node(c, height-1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) tell(ref Ref) error {
	if w.refs++; w.refs > w.limits.Refs {
		return fmt.Errorf("walk nodes: got more than %d parts of files; want at most that: %w", w.limits.Refs, ErrLimit)
	}
	return w.visit(ref)
}

// entries reads a node's body: its children, or where it is a leaf, the values outside.
func entries(b []byte, height int, base string) (children, values []place, err error) {
	r := &reader{b: b}
	if got := int(r.byte()); got != height && r.err == nil {
		return nil, nil, fmt.Errorf("got height %d; want %d", got, height)
	}
	files := r.files(base)
	n := r.count()
	r.skipKeys(n, height > 0)
	if height > 0 {
		children = r.refs(files, n)
		return children, nil, r.err
	}
	lengths := r.varints(n)
	kinds := r.bytes(uint64(n))
	var outside []uint64
	for i, k := range kinds {
		switch k {
		case 0: // within the node
		case 1:
			outside = append(outside, lengths[i])
		default:
			return nil, nil, fmt.Errorf("got a value of kind %d; want 0 or 1", k)
		}
	}
	id, offset := r.varints(len(outside)), r.varints(len(outside))
	values = r.places(files, id, offset, outside)
	return nil, values, r.err
}
