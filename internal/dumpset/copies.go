// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// likeness is what two copies of one dump have in common without being read again. Without
// operations the dumps of several ranks can be equal.
type likeness struct {
	size, entries, newest, rank int64
	sum                         uint64
}

// copies leaves out what is there twice: a copy of a dump that has the same content, and one
// whose name tells no rank, or a wrong one, beside a dump of its rank that has the name of one.
// The dumps of two ranks that do the same can hold the same bytes: under the names of two ranks, of
// which neither has another dump, they are of both.
func (r *run) copies() {
	alike := map[likeness][]*item{}
	named := map[rankIn]int{}
	for i := range r.items {
		it := &r.items[i]
		if it.byName {
			named[it.place()]++
		}
		if it.light == nil {
			continue
		}
		k := likeness{size: it.size, entries: it.entries, newest: it.light.LastEnqueue, sum: it.sum}
		if it.entries == 0 {
			k.rank = it.rank
		}
		alike[k] = append(alike[k], it)
	}
	for _, of := range alike {
		if len(of) > 1 {
			sameOnce(of, named)
		}
	}
	for i := range r.items {
		if it := &r.items[i]; it.light != nil && it.copyOf == "" && !it.byName && named[it.place()] > 0 {
			it.err = fmt.Errorf("tell dumps of rank %d apart: its name does not say that rank, and another's beside it does", it.rank)
			it.named, it.light = false, nil
		}
	}
}

// rankIn is a rank, and the folder that has its dump.
type rankIn struct {
	dir  string
	rank int64
}

func (it *item) place() rankIn { return rankIn{filepath.Dir(it.path), it.rank} }

// sameOnce keeps one of those that have the same content: one whose name says its rank, the
// first by name.
func sameOnce(of []*item, named map[rankIn]int) {
	slices.SortFunc(of, func(a, b *item) int {
		return cmp.Or(cmp.Compare(certainty(a), certainty(b)), cmp.Compare(named[a.place()], named[b.place()]), cmp.Compare(a.path, b.path))
	})
	for i, first := range of {
		for _, it := range of[i+1:] {
			if first.copyOf != "" || it.copyOf != "" || !sameContent(first.path, it.path) {
				continue
			}
			if first.rank != it.rank && first.byName && it.byName && named[it.place()] < 2 {
				continue
			}
			it.copyOf = first.path
		}
	}
}

func certainty(it *item) int {
	if it.byName {
		return 0
	}
	return 1
}

// comparedAt is how much of two files is compared at a time.
const comparedAt = 64 << 10

// sameContent reports whether two files hold the same bytes; what can not be read does not.
func sameContent(a, b string) bool {
	x, err := os.Open(a)
	if err != nil {
		return false
	}
	defer func() { _ = x.Close() }() // it was only read
	y, err := os.Open(b)
	if err != nil {
		return false
	}
	defer func() { _ = y.Close() }() // it was only read
	left, right := make([]byte, comparedAt), make([]byte, comparedAt)
	for {
		n, errX := io.ReadFull(x, left)
		m, errY := io.ReadFull(y, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false
		}
		if errX != nil || errY != nil {
			return ended(errX) && ended(errY)
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
