// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchsave"
)

const (
	maxTwinFiles = 4096 // files of a save of which an item is compared
	maxTwinItems = 64   // items that are compared of two files that look alike
)

// dcpFile is a file of DCP with the items in it, the largest first, one of each name.
type dcpFile struct {
	name  string
	items []*dcpItem
}

// probe is the item that is compared first, without its file and name.
func (d *dcpFile) probe() dcpItem {
	if len(d.items) == 0 {
		return dcpItem{}
	}
	it := *d.items[0]
	it.file, it.fqn = "", ""
	return it
}

// judgeDCPTwins doubts files of DCP that hold the same, where .metadata says that they hold different parts of the same
// tensors, or averages of different parameters: one was copied over the other. Other items of other names may be alike,
// as buffers of layers are.
func judgeDCPTwins(b *builder, f *folder, items []dcpItem) {
	like := map[dcpItem][]dcpFile{} // by the item that is compared first, without its file
	files := dcpFiles(b.names, items)
	for _, d := range files[:min(maxTwinFiles, len(files))] {
		like[d.probe()] = append(like[d.probe()], d)
	}
	for _, d := range files {
		if all := like[d.probe()]; len(d.items) > 0 && len(all) > 1 && all[0].name == d.name {
			judgeLikeDCP(b, f, all)
		}
	}
}

// dcpFiles lists the files with those of their items that differ between files: of which others have a part, too, and
// what an optimizer keeps.
func dcpFiles(names *dcpNames, items []dcpItem) (files []dcpFile) {
	parts := map[string]string{} // the first file of a name; "" where there are several
	for i := range items {
		it := &items[i]
		if first, ok := parts[it.fqn]; !ok {
			parts[it.fqn] = it.file
		} else if first != it.file {
			parts[it.fqn] = ""
		}
	}
	for i := range items {
		it := &items[i]
		if i == 0 || items[i-1].file != it.file {
			files = append(files, dcpFile{name: it.file})
		}
		if (parts[it.fqn] == "" || names.isOptimizer(it.fqn)) && !it.transformed {
			last := &files[len(files)-1]
			last.items = append(last.items, it)
		}
	}
	for i := range files {
		slices.SortFunc(files[i].items, func(a, b *dcpItem) int {
			return cmp.Or(cmp.Compare(b.length, a.length), cmp.Compare(a.offset, b.offset))
		})
	}
	return files
}

// judgeLikeDCP compares files whose largest item has one place and length.
func judgeLikeDCP(b *builder, f *folder, like []dcpFile) {
	byContent := map[[32]byte]dcpFile{}
	for _, d := range like {
		if b.ctx.Err() != nil {
			return
		}
		digest, _, ok := dcpContent(b, f, d.items[0], false)
		if !ok {
			continue
		}
		first, again := byContent[digest]
		if !again {
			byContent[digest] = d
			continue
		}
		if sameItems(b, f, first, d) {
			sameFiles(b, f, first.name, d.name)
			sameFiles(b, f, d.name, first.name)
		}
	}
}

// sameItems reports whether all items of two files that are compared are alike, and one at least that decides is not
// filled with one value. Weights may begin as copies, as those of experts: where there are averages, those decide.
func sameItems(b *builder, f *folder, x, y dcpFile) bool {
	if len(x.items) != len(y.items) {
		return false
	}
	varies := false
	averages := slices.ContainsFunc(x.items, func(it *dcpItem) bool { return b.names.isOptimizer(it.fqn) })
	tells := func(fqn string) bool {
		if averages {
			return b.names.isOptimizer(fqn)
		}
		return !strings.Contains(fqn, "expert")
	}
	step := max(1, len(x.items)/maxTwinItems)
	for i := 0; i < len(x.items); i += step {
		p, q := x.items[i], y.items[i]
		if p.offset != q.offset || p.length != q.length || p.fqn != q.fqn && (!b.names.isOptimizer(p.fqn) || !b.names.isOptimizer(q.fqn)) {
			return false
		}
		a, v, ok1 := dcpContent(b, f, p, !varies && tells(p.fqn))
		c, _, ok2 := dcpContent(b, f, q, false)
		if !ok1 || !ok2 || a != c {
			return false
		}
		varies = varies || v
	}
	return varies
}

// dcpContent is a digest of the content of an item, and, if that is looked at, whether it holds several values; false where it has no checksums.
func dcpContent(b *builder, f *folder, it *dcpItem, look bool) (digest [32]byte, varies, ok bool) {
	x, err := b.open(f.join(it.file))
	if err != nil {
		return digest, false, false
	}
	defer x.close()
	if it.length == 0 || it.offset+it.length > x.size {
		return digest, false, false
	}
	z, err := torchsave.Open(io.NewSectionReader(x, it.offset, it.length), it.length)
	if err != nil {
		return digest, false, false
	}
	digest, ok = z.Content()
	return digest, ok && look && z.Varies(), ok
}

// sameFiles doubts what lies in a file that is the same as another.
func sameFiles(b *builder, f *folder, name, other string) {
	name = f.join(name)
	of := b.domainsByFile()[name]
	for _, i := range of {
		if d := &b.save.Domains[i]; d.State != model.DomainAbsent {
			d.State = model.DomainTentative
		}
	}
	b.problem(&b.save, Problem{
		CheckWitness, Suspect, name,
		"got the same content as " + f.join(other) + "; want another: .metadata names them as different parts of the same tensors, or of an optimizer's state, and one was copied over the other",
	})
}
