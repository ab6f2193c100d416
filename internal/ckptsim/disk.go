// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
)

// Disk is a file system in memory that remembers what reached it, and what only its caches.
type Disk struct {
	clock int64 // of modifications: one tick, of a microsecond, for each operation
	nodes []*node
	names []naming // in the order in which they were done
}

// node is a file or a folder, under whatever names. Its number is its place in Disk.nodes.
type node struct {
	dir    bool
	made   int64 // tick
	writes []write
	synced int // how many of writes are on the disk
	// live is what is in the caches; of a folder, its entries.
	live    []byte
	entries map[string]int
}

// write changes a file's contents: it cuts it to nothing, or puts data somewhere.
type write struct {
	cut  bool
	off  int64
	data []byte
	at   int64 // tick
}

// naming changes entries of folders, all of them or none: a rename changes two.
type naming struct {
	set    []entry
	synced bool
}

// entry says that a name in a folder is of a node, or of none where node is 0: the root,
// which no folder holds.
type entry struct {
	dir  int
	name string
	node int
}

// NewDisk returns an empty file system.
func NewDisk() *Disk {
	return &Disk{nodes: []*node{{dir: true, entries: map[string]int{}}}}
}

// Handles are the files that one rank has open, by path.
type Handles map[string]int

// Do does an operation. An error is a mistake in a writer.
func (d *Disk) Do(op Op, open Handles) error {
	d.clock++
	if op.Kind == Barrier {
		return nil
	}
	if op.Kind == FsyncDir && op.Path == "." {
		d.sync(0)
		return nil
	}
	dir, name, err := d.parent(op.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	at, there := d.nodes[dir].entries[name]
	switch op.Kind {
	case Mkdir:
		if !there {
			d.name(entry{dir, name, d.add(&node{dir: true, entries: map[string]int{}})})
		}
		return nil
	case Create:
		d.create(op.Path, dir, name, open)
		return nil
	case Write:
		n, ok := open[op.Path]
		if !ok {
			return fmt.Errorf("%s: got a file that is not open; want it created before", op)
		}
		d.nodes[n].put(write{off: op.Offset, data: op.Data, at: d.clock})
		return nil
	}
	if !there && op.Maybe {
		return nil
	}
	if !there {
		return fmt.Errorf("%s: got no such file; want it", op)
	}
	return d.existing(op, dir, name, at)
}

// existing does the operations that need something under their path.
func (d *Disk) existing(op Op, dir int, name string, at int) error {
	switch op.Kind {
	case Fsync:
		d.nodes[at].synced = len(d.nodes[at].writes)
	case FsyncDir:
		d.sync(at)
	case Remove:
		if n := d.nodes[at]; n.dir && len(n.entries) > 0 {
			return fmt.Errorf("%s: got %d entries; want an empty folder", op, len(n.entries))
		}
		d.name(entry{dir, name, 0})
	case Rename:
		toDir, to, err := d.parent(op.To)
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		d.name(entry{dir, name, 0}, entry{toDir, to, at})
	default:
		return fmt.Errorf("%s: got kind %d; want an operation on files", op, op.Kind)
	}
	return nil
}

func (d *Disk) create(p string, dir int, name string, open Handles) {
	at, there := d.nodes[dir].entries[name]
	if there {
		d.nodes[at].put(write{cut: true, at: d.clock})
	} else {
		at = d.add(&node{})
		d.name(entry{dir, name, at})
	}
	open[p] = at
}

func (d *Disk) add(n *node) int {
	n.made = d.clock
	d.nodes = append(d.nodes, n)
	return len(d.nodes) - 1
}

func (d *Disk) name(set ...entry) {
	for _, e := range set {
		if e.node == 0 {
			delete(d.nodes[e.dir].entries, e.name)
		} else {
			d.nodes[e.dir].entries[e.name] = e.node
		}
	}
	d.names = append(d.names, naming{set: set})
}

// sync brings the entries of a folder to the disk.
func (d *Disk) sync(dir int) {
	for i := range d.names {
		d.names[i].synced = d.names[i].synced || slices.ContainsFunc(d.names[i].set, func(e entry) bool { return e.dir == dir })
	}
}

// Settle brings everything to the disk, as half an hour does.
func (d *Disk) Settle() {
	for i := range d.names {
		d.names[i].synced = true
	}
	for _, n := range d.nodes {
		if len(n.writes) > 0 {
			n.writes = []write{{cut: true}, {data: n.live, at: n.writes[len(n.writes)-1].at}}
		}
		n.synced = len(n.writes)
	}
}

// Clone returns a copy; what happens to one is not seen in the other.
func (d *Disk) Clone() *Disk {
	c := &Disk{clock: d.clock, names: slices.Clone(d.names), nodes: make([]*node, len(d.nodes))}
	for i, n := range d.nodes {
		m := *n
		m.writes, m.entries = slices.Clone(n.writes), maps.Clone(n.entries)
		c.nodes[i] = &m
	}
	return c
}

func (d *Disk) parent(p string) (dir int, name string, err error) {
	at := 0
	for part := range splitPath(path.Dir(p)) {
		next, ok := d.nodes[at].entries[part]
		if !ok || !d.nodes[next].dir {
			return 0, "", fmt.Errorf("got no folder %q; want it", path.Dir(p))
		}
		at = next
	}
	return at, path.Base(p), nil
}

func (n *node) put(w write) {
	n.writes = append(n.writes, w)
	n.live = w.apply(n.live)
}

func (w write) apply(b []byte) []byte {
	if w.cut {
		return nil
	}
	if end := int(w.off) + len(w.data); end > len(b) {
		b = append(bytes.Clone(b), make([]byte, end-len(b))...)
	} else {
		b = bytes.Clone(b)
	}
	copy(b[w.off:], w.data)
	return b
}
