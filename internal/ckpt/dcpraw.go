package ckpt

import (
	"bytes"
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// rawItem is an item that does not begin as a file of torch.save does.
type rawItem struct {
	domain int
	file   string
	fqn    string
	offset int64
	zeros  bool
}

// isBlob reports whether an item is a file of torch.save. With other serialization formats none
// is, so that judgeRaw says what it means that this one is not.
func (b *builder) isBlob(i int, f *file, it *dcpItem) bool {
	if it.transformed || it.length == 0 || it.offset+it.length > f.size {
		return false
	}
	head := make([]byte, min(4, it.length))
	if _, err := f.ReadAt(head, it.offset); err != nil {
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, f.path, fmt.Sprintf("item %s at offset %d: %v", quote(it.fqn), it.offset, err)})
		return false
	}
	if bytes.Equal(head, []byte("PK\x03\x04")) {
		b.blobs = true
		return true
	}
	raw := rawItem{i, f.path, it.fqn, it.offset, len(bytes.Trim(head, "\x00")) == 0}
	if len(b.raw) < b.opt.Limits.Domains { // at most one of each file counts
		b.raw = append(b.raw, raw)
	}
	return false
}

// judgeRaw: where other items are files of torch.save, one that begins with zeros was lost, and one
// that begins otherwise is not known. Where none is, another serialization was used: of that
// nothing is known but that its items do not all begin with zeros.
func (b *builder) judgeRaw() {
	for _, r := range b.raw {
		switch {
		case b.blobs && r.zeros:
			b.torn(r.domain, CheckTorn, r.file, "item %s at offset %d: got zeros; want a file of torch.save, as other items are", quote(r.fqn), r.offset)
		case b.blobs:
			b.doubt(r.domain, model.DomainTentative, Problem{CheckTorn, Suspect, r.file, fmt.Sprintf("item %s at offset %d: got no file of torch.save; want one, as other items are", quote(r.fqn), r.offset)})
		case r.zeros:
			b.doubt(r.domain, model.DomainTentative, Problem{CheckTorn, Suspect, r.file, fmt.Sprintf("item %s at offset %d: got zeros; want what a serialization begins with", quote(r.fqn), r.offset)})
		}
	}
	b.raw = nil
}
