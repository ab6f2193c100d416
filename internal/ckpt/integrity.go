// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// megatronIntegrity is what Megatron writes last into a save, where it is asked to (save_integrity):
// the digest of every file that the folder has then. See megatron/core/dist_checkpointing/integrity.py.
const megatronIntegrity = "integrity.json"

// integrityAlgorithm is the only one that its loader takes, and takes where none is named.
const integrityAlgorithm = "sha256"

// readIntegrity compares the folder with its integrity.json, where it has one: each file that is listed
// must be there, not newer, and with Verify have the digest. Files that it does not list were written
// later, or lie in folders, of which it lists none.
func (b *builder) readIntegrity(f *folder) {
	if !f.has(megatronIntegrity) {
		return
	}
	name := f.join(megatronIntegrity)
	i := b.domain(model.DomainCommit, megatronIntegrity, name)
	x := b.shard(i, name, 1, nil)
	if x == nil {
		return
	}
	x.close()
	var doc struct {
		Algorithm json.RawMessage   `json:"algorithm"`
		Files     map[string]string `json:"files"`
	}
	if err := b.json(name, &doc); err != nil {
		b.unread(i, CheckTorn, name, err)
		return
	}
	if a := string(doc.Algorithm); a != "" && a != `"`+integrityAlgorithm+`"` {
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, fmt.Sprintf("got algorithm %s; want %s, the only one that Megatron's loader takes", quoteJSON(doc.Algorithm), integrityAlgorithm)})
		return
	}
	switch n := len(doc.Files); {
	case n == 0:
		b.torn(i, CheckTorn, name, "got no files; want the digest of each")
		return
	case n > b.opt.Limits.Entries:
		b.unread(i, CheckTorn, name, fmt.Errorf("got %d files; want at most %d: %w", n, b.opt.Limits.Entries, errLimit))
		return
	}
	of := b.domainsByFile()
	mark := &marker{name: name, mod: x.mod}
	for _, file := range slices.Sorted(maps.Keys(doc.Files)) {
		if !fs.ValidPath(file) || file == "." || !isDigest(doc.Files[file]) {
			b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, "got file " + quote(file) + " with digest " + quote(doc.Files[file]) + "; want a file of the folder and a SHA-256 in hexadecimal"})
			continue
		}
		b.listedFile(of, f, file, doc.Files[file], mark)
	}
}

// quoteJSON quotes a text as it reads, and any other value as it was written.
func quoteJSON(value json.RawMessage) string {
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return quote(text)
}

// isDigest reports whether a text is a SHA-256 as Megatron writes it, and compares it: in small letters.
func isDigest(s string) bool {
	d, err := hex.DecodeString(s)
	return err == nil && len(d) == sha256.Size && hex.EncodeToString(d) == s
}

// domainsByFile are those that lie in each file.
func (b *builder) domainsByFile() map[string][]int {
	of := map[string][]int{}
	for i := range b.save.Domains {
		if file := b.save.Domains[i].File; file != "" {
			of[file] = append(of[file], i)
		}
	}
	return of
}

// listedFile looks at one file that integrity.json lists. What is wrong with it is wrong with every
// domain that lies in it; a file of which nobody has asked yet is a domain of its own.
func (b *builder) listedFile(of map[string][]int, f *folder, file, digest string, m *marker) {
	name := f.join(file)
	in := of[name]
	state, p, newer := b.listedState(name, digest, m)
	if state == model.DomainCommitted && newer == nil {
		return
	}
	if len(in) == 0 {
		in = []int{b.domain(model.DomainModel, "file "+file, name)}
	}
	if newer != nil {
		b.notOlder(in, newer, m, "has its digest")
		return
	}
	for _, i := range in[1:] {
		if d := &b.save.Domains[i]; d.State != model.DomainAbsent {
			d.State = state
		}
	}
	b.doubt(in[0], state, p)
}

// listedState says what becomes of the domains of a listed file, and why. Where only times are to be had, a
// file that is newer than the list is returned.
func (b *builder) listedState(name, digest string, m *marker) (model.DomainState, Problem, *file) {
	x, err := b.open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return model.DomainAbsent, Problem{CheckShards, Partial, name, "got no such file; want it: " + m.name + " lists it"}, nil
	case err != nil:
		return model.DomainTentative, Problem{CheckInput, Unreadable, name, err.Error()}, nil
	}
	defer x.close()
	if !b.opt.Verify {
		if m.newer(x.mod) {
			return model.DomainCommitted, Problem{}, x
		}
		return model.DomainCommitted, Problem{}, nil
	}
	switch got, err := b.digest(x); {
	case err != nil:
		return model.DomainTentative, Problem{CheckInput, Unreadable, name, err.Error()}, nil
	case got != digest:
		return model.DomainTentative, Problem{CheckTorn, Partial, name, fmt.Sprintf("got a SHA-256 of %s; want %s, by %s, which has its digest", got, digest, m.name)}, nil
	}
	b.save.late = slices.DeleteFunc(b.save.late, func(l late) bool { return l.file == name }) // its content is known
	return model.DomainCommitted, Problem{}, nil
}

// digest is the SHA-256 of a file, which is read in parts; it ends where the reading as a whole does.
func (b *builder) digest(f *file) (string, error) {
	const part = 1 << 20
	h := sha256.New()
	for off := int64(0); off < f.size; off += part {
		if err := b.ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.Copy(h, io.NewSectionReader(f, off, min(part, f.size-off))); err != nil {
			return "", fmt.Errorf("read at %d: %w", off, clause(err))
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
