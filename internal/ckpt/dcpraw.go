// SPDX-License-Identifier: Apache-2.0

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
	zeros  bool // it begins with zeros
	all    bool // and so do all items of the file
}

// headBytes is how much of an item is looked at: the signature of a zip file, as of those of the
// usual compressors.
const headBytes = 4

// isBlob reports whether an item is a file of torch.save. With other serialization formats none
// is, so that judgeRaw says what it means that this one is not.
func (b *builder) isBlob(i int, f *file, it *dcpItem) bool {
	if it.length == 0 || it.offset+it.length > f.size {
		return false
	}
	head, err := head(f, it)
	if err != nil {
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, f.path, fmt.Sprintf("item %s at offset %d: %v", quote(it.fqn), it.offset, err)})
		return false
	}
	zeros := len(bytes.Trim(head, "\x00")) == 0
	if it.transformed {
		if zeros {
			b.doubt(i, model.DomainTentative, Problem{CheckTorn, Suspect, f.path, fmt.Sprintf("item %s at offset %d: got zeros; want what a transform begins with", quote(it.fqn), it.offset)})
		}
		return false
	}
	if bytes.Equal(head, []byte("PK\x03\x04")) {
		b.blobs = true
		return true
	}
	if len(b.raw) < b.opt.Limits.Domains { // at most one of each file counts
		b.raw = append(b.raw, rawItem{domain: i, file: f.path, fqn: it.fqn, offset: it.offset, zeros: zeros})
	}
	return false
}

func head(f *file, it *dcpItem) ([]byte, error) {
	head := make([]byte, min(headBytes, it.length))
	_, err := f.ReadAt(head, it.offset)
	return head, err
}

// onlyZeros marks those items of a file that begin with zeros, where all others do so too.
func (b *builder) onlyZeros(f *file, items []dcpItem, raw []rawItem) {
	zeros := false
	for i := range raw {
		zeros = zeros || raw[i].zeros
	}
	if !zeros {
		return
	}
	for i := range items {
		if it := &items[i]; it.length > 0 && it.offset+it.length <= f.size {
			if head, err := head(f, it); err != nil || len(bytes.Trim(head, "\x00")) > 0 {
				return
			}
		}
	}
	for i := range raw {
		raw[i].all = true
	}
}

// judgeRaw: where other items are files of torch.save, one that begins with zeros was lost, and one
// that begins otherwise is not known. Where none is, another serialization was used: of that nothing
// is known but that not all items of a file begin with zeros; that one does may be a tensor of zeros.
func (b *builder) judgeRaw() {
	for _, r := range b.raw {
		switch {
		case b.blobs && r.zeros:
			b.torn(r.domain, CheckTorn, r.file, "item %s at offset %d: got zeros; want a file of torch.save, as other items are", quote(r.fqn), r.offset)
		case b.blobs:
			b.doubt(r.domain, model.DomainTentative, Problem{CheckTorn, Suspect, r.file, fmt.Sprintf("item %s at offset %d: got no file of torch.save; want one, as other items are", quote(r.fqn), r.offset)})
		case r.all:
			b.doubt(r.domain, model.DomainTentative, Problem{CheckTorn, Suspect, r.file, fmt.Sprintf("item %s at offset %d: got zeros, as in all items of the file; want what a serialization begins with", quote(r.fqn), r.offset)})
		}
	}
	b.raw = nil
}
