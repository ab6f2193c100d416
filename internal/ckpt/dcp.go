// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchsave"
)

const dcpMetadata = ".metadata"

// isDCP reports whether a folder holds a save of PyTorch DCP, finished or not.
func isDCP(f *folder) bool {
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		name := e.Name()
		_, shard := dcpRank(name)
		return name == dcpMetadata || name == dcpMetadata+".tmp" || shard
	})
}

// dcpRank returns the rank that wrote a file: of "__3_0.distcp", "__3.metadata" or
// "__3.metadata.tmp" it is 3.
func dcpRank(name string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, "__")
	n := digits(rest)
	if !ok || n == 0 || n == len(rest) {
		return 0, false
	}
	_, shard := number(strings.TrimSuffix(strings.TrimPrefix(rest[n:], "_"), ".distcp"))
	shard = shard && rest[n] == '_' && strings.HasSuffix(rest, ".distcp")
	if !shard && rest[n:] != dcpMetadata && rest[n:] != dcpMetadata+".tmp" {
		return 0, false
	}
	return number(rest[:n])
}

// saveDCP reads a folder of DCP, plain or with what Megatron or Lightning adds to it.
func saveDCP(s *scan, f *folder) bool {
	if !isDCP(f) {
		return false
	}
	epoch, named := numbered(s.name, megatronPrefix)
	step, titan := numbered(s.name, torchtitanPrefix)
	b := s.newSave(FormatDCP, f.path, some(max(epoch, step), named || titan))
	b.titan = titan
	b.readDCP(f)
	switch {
	case named, b.hasCommon, s.hasMegatronFile(f): // one iteration of Megatron's, without its tracker
		b.save.Format = FormatMegatronDist
		b.readMegatronFiles(f)
		noteMegatronRNG(b, f)
		if !b.save.Epoch.OK {
			b.save.Epoch = onlyOwn(&b.save)
		}
	case strings.HasSuffix(s.name, lightningExt), f.has(lightningMeta):
		b.save.Format = FormatLightning
		b.lightningFile(f.join(lightningMeta), "meta")
		b.lightningEpoch(s.name)
		noteWeightsOfDCP(b, saveWeightsOnly)
	case titan:
		countTitan(b)
		noteWeightsOfDCP(b, noOptimizerItem)
	}
	b.done()
	return true
}

// readDCP reads the DCP files of a folder. Where one .metadata commits all, a marker that is
// there says that all ranks had written; where each rank has its own, nothing does.
func (b *builder) readDCP(f *folder) {
	locals := dcpLocals(f)
	if len(locals) > 0 && !f.has(dcpMetadata) {
		b.readDCPLocal(f, locals)
		return
	}
	commit := b.domain(model.DomainCommit, dcpMetadata, f.join(dcpMetadata))
	if f.cut {
		b.doubt(commit, model.DomainTentative, Problem{CheckInput, Unreadable, f.path, "got more entries than are read; want fewer"})
	}
	if f.has(dcpMetadata + ".tmp") {
		b.torn(commit, CheckUnfinished, f.join(dcpMetadata+".tmp"), "got metadata that was not renamed; want none: a save is under way, or was cut off")
	}
	files := b.readDCPMetadata(f, dcpMetadata, commit, -1)
	b.judgeRaw()
	b.extraShards(f, files)
	if files == nil {
		b.uncommitted(f)
	}
	b.dcpEpoch()
}

// dcpLocals returns the ranks that committed for themselves, ascending.
func dcpLocals(f *folder) []int64 {
	var ranks []int64
	for _, e := range f.entries {
		if r, ok := dcpRank(e.Name()); ok && strings.Contains(e.Name(), dcpMetadata) {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// readDCPMetadata reads a metadata file and the shards that it names; rank is whose it is, -1
// where it is of all. It returns the files that it names, nil where it can not be read.
func (b *builder) readDCPMetadata(f *folder, name string, commit int, rank int64) map[string]bool {
	name = f.join(name)
	m := b.shard(commit, name, 1, nil)
	if m == nil {
		return nil
	}
	defer m.close()
	data, err := readBounded(m, m.size, int64(b.opt.Limits.Pickle.Bytes))
	if err != nil {
		b.unread(commit, CheckTorn, name, err)
		return nil
	}
	items, saved, err := b.dcpItems(data)
	if err != nil {
		b.unread(commit, CheckTorn, name, err)
		return nil
	}
	savedElsewhere(b, commit, f, name, saved)
	b.names = namesOf(items, b.save.Format == FormatTorchtitan || b.titan)
	b.readDCPFiles(f, items, &marker{name: name, mod: m.mod, reused: !b.save.Epoch.OK}, rank)
	if rank < 0 {
		judgeDCPTwins(b, f, items)
	}
	files := map[string]bool{}
	for i := range items {
		files[items[i].file] = true
		b.hasCommon = b.hasCommon || strings.HasPrefix(items[i].fqn, "common_state")
		b.items.note(b.names, items[i].fqn)
	}
	return files
}

// readDCPFiles looks at each file once, with the items that lie in it.
func (b *builder) readDCPFiles(f *folder, items []dcpItem, m *marker, rank int64) {
	slices.SortStableFunc(items, func(x, y dcpItem) int { return strings.Compare(x.file, y.file) })
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].file == items[0].file {
			n++
		}
		b.readDCPFile(f, items[:n], m, rank)
		items = items[n:]
	}
}

func (b *builder) readDCPFile(f *folder, items []dcpItem, m *marker, rank int64) {
	name := items[0].file
	if !fs.ValidPath(name) || strings.HasPrefix(name, "../") {
		i := b.domain(model.DomainModel, "outside the save", name)
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, m.name, "got a shard " + quote(name) + "; want one in the folder of the save"})
		return
	}
	id, writer := "file "+name, rank
	if r, ok := dcpRank(path.Base(name)); ok {
		writer = r
	}
	if writer >= 0 {
		id = rankID(writer)
	}
	var domains []int
	last := items[0]
	for k := range items {
		i := b.domain(b.names.kind(items[k].fqn), id, f.join(name))
		if !slices.Contains(domains, i) {
			domains = append(domains, i)
		}
		if items[k].offset+items[k].length > last.offset+last.length {
			last = items[k]
		}
	}
	shard := b.sparse(domains[0], f.join(name), last.offset+last.length, m)
	if shard != nil {
		defer shard.close()
		b.dcpBlobs(domains[0], shard, items, &last)
		countShard(b, id, shard, items)
	}
	b.lateToo(f.join(name), domains[1:])
	state := b.save.Domains[domains[0]].State
	for _, i := range domains[1:] {
		if state != model.DomainCommitted && b.save.Domains[i].State != model.DomainAbsent {
			b.save.Domains[i].State = state
		}
	}
}

// dcpBlobs looks at the end of the last item, which every item is a file of torch.save of
// its own, and reads the step where there is one.
func (b *builder) dcpBlobs(i int, shard *file, items []dcpItem, last *dcpItem) {
	if b.save.Domains[i].State == model.DomainAbsent {
		return
	}
	before := len(b.raw)
	defer func() { b.onlyZeros(shard, items, b.raw[before:]) }()
	if b.isBlob(i, shard, last) {
		blob := io.NewSectionReader(shard, last.offset, last.length)
		z, err := torchsave.Open(blob, last.length)
		if err == nil && !b.opt.Verify { // else it is looked at below, as all are
			err = z.Storages(b.opt.Limits.Pickle)
		}
		if err != nil {
			b.unread(i, CheckTorn, shard.path, last.failed(err))
		}
	}
	if !b.opt.Verify {
		b.noHole(i, shard, sparseOrLost)
	}
	for k := range items {
		it := &items[k]
		switch {
		case !b.opt.Verify:
		case b.isBlob(i, shard, it):
			b.verifyBlob(i, shard, it)
		default:
			b.noHole(i, shard, uncheckedHole)
		}
		if it.transformed || !b.names.isStep(it.fqn) || it.offset+it.length > shard.size {
			continue
		}
		of := b.domain(b.names.kind(it.fqn), b.save.Domains[i].ID, shard.path)
		if !b.isBlob(of, shard, it) {
			continue
		}
		switch n, ok, err := b.blobNumber(shard, it); {
		case err != nil:
			check, severity := b.beyond(CheckWitness, Unreadable, err)
			b.doubt(of, model.DomainTentative, Problem{check, severity, shard.path, it.failed(err).Error()})
		case ok:
			b.hold(of, n, it.fqn, shard.path)
		}
	}
}

func (b *builder) verifyBlob(i int, shard *file, it *dcpItem) {
	z, err := torchsave.Open(io.NewSectionReader(shard, it.offset, it.length), it.length)
	if err != nil {
		b.unread(i, CheckTorn, shard.path, it.failed(err))
		return
	}
	if err := z.Storages(b.opt.Limits.Pickle); err != nil {
		b.unread(i, CheckTorn, shard.path, it.failed(err))
	}
	b.checksums(i, shard, z, it.failed)
}

// blobNumber reads an item that is a number, or a tensor of one element; false where it is
// something else.
func (b *builder) blobNumber(shard *file, it *dcpItem) (int64, bool, error) {
	const most = 1 << 20 // a number with its frame is 1.5 kB
	if it.length > most {
		return 0, false, nil
	}
	z, err := torchsave.Open(io.NewSectionReader(shard, it.offset, it.length), it.length)
	if err != nil {
		return 0, false, err
	}
	m, v, err := z.Value(b.opt.Limits.Pickle)
	if err != nil {
		return 0, false, err
	}
	n, ok := z.Number(m, v)
	return n, ok, cmp.Or(z.Err(), z.Lost())
}
