// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// jsonReader gives the values of a JSON dump their meaning.
type jsonReader struct {
	*builder
	s scan
}

func (b *builder) json(data []byte) error {
	r := &jsonReader{b, scan{b: data, limit: b.o.Limits.Pickle}}
	if r.s.peek() == '[' {
		if err := r.entries(); err != nil {
			return err
		}
		return r.end()
	}
	known := 0
	err := r.s.object(func(name []byte) error {
		k := keyOf(name)
		if k >= keyVersion {
			known++
		}
		return r.part(k, name)
	})
	if err != nil {
		return err
	}
	if known == 0 {
		return errors.New("got an object without version and entries; want a dump, or an object that holds dumps by rank")
	}
	return r.end()
}

// end refuses what is behind the dump.
func (r *jsonReader) end() error {
	if r.s.peek() != 0 || r.s.i < len(r.s.b) {
		return fmt.Errorf("offset %d: got %d %w; want none", r.s.i, len(r.s.b)-r.s.i, errBehind)
	}
	return nil
}

func (r *jsonReader) part(k key, name []byte) error {
	switch k {
	case keyVersion:
		f, err := r.s.field()
		if err == nil {
			r.d.Version, err = parseVersion(string(f.text))
		}
		return err
	case keyLibVersion:
		f, err := r.s.field()
		if err == nil {
			r.d.LibVersion = r.d.texts[r.textField(f)]
		}
		return err
	case keyEntries:
		return r.entries()
	case keyGroups:
		return r.objects(r.group)
	case keyStatus:
		return r.objects(r.status)
	}
	start := r.s.i
	n, err := r.s.skip()
	value := bytes.TrimSpace(r.s.b[start:r.s.i])
	if rank, ok := rankField(name, value); ok {
		r.d.Rank = rank
		return err
	}
	if host, ok := hostField(name, value); ok {
		r.d.Host = host
		return err
	}
	r.extra(name, n, false)
	return err
}

// objects calls do for each member that is an object, which must read it.
func (r *jsonReader) objects(do func(name []byte) error) error {
	if r.s.peek() != '{' {
		r.d.Stats.BadFields++
		_, err := r.s.skip()
		return err
	}
	return r.s.object(func(name []byte) error {
		if r.s.peek() == '{' {
			return do(name)
		}
		r.d.Stats.BadFields++
		_, err := r.s.skip()
		return err
	})
}

func (r *jsonReader) group(name []byte) error {
	var desc, ranks []byte
	err := r.s.object(func(k []byte) error {
		if keyOf(k) == keyRanks && r.s.peek() == '[' {
			start := r.s.i
			_, err := r.s.skip()
			ranks = r.s.b[start:r.s.i]
			return err
		}
		f, err := r.s.field()
		switch {
		case err != nil || f.kind != '"':
		case keyOf(k) == keyName:
			name = f.text
		case keyOf(k) == keyDesc:
			desc = f.text
		case keyOf(k) == keyRanks:
			ranks = f.text
		}
		return err
	})
	if err == nil {
		r.addGroup(name, desc, r.members(ranks))
	}
	return err
}

func (r *jsonReader) status(name []byte) error {
	s := Status{ID: -1, Enqueued: -1, Started: -1, Completed: -1}
	r.set(&s.ID, field{'"', name})
	err := r.s.object(func(k []byte) error {
		f, err := r.s.field()
		if err != nil {
			return err
		}
		switch keyOf(k) {
		case keyEnqueued:
			r.set(&s.Enqueued, f)
		case keyStarted:
			r.set(&s.Started, f)
		case keyCompleted:
			r.set(&s.Completed, f)
		}
		return nil
	})
	if err == nil && s.ID >= 0 {
		r.addStatus(s)
	}
	return err
}

func (r *jsonReader) entries() error {
	if r.s.peek() == 'n' { // null: Python writes it for none
		_, err := r.s.literal()
		return err
	}
	return r.s.list(func() error {
		if r.s.peek() != '{' && r.s.peek() != 0 {
			r.d.Stats.Entries++
			r.d.Stats.BadEntries++
			_, err := r.s.skip()
			return err
		}
		return r.entry()
	})
}

func (r *jsonReader) entry() error {
	e := emptyEntry
	err := r.s.object(func(k []byte) error { return r.member(&e, keyOf(k), k) })
	switch {
	case err == nil:
		r.addEntry(&e)
	case errors.Is(err, pickle.ErrTruncated):
		r.d.Stats.EntriesCut++
	}
	return err
}

// member reads a field of an entry, those that are no plain values first.
func (r *jsonReader) member(e *Entry, k key, name []byte) (err error) {
	switch k {
	case keyProcessGroup:
		e.tag, err = r.pair()
		return err
	case keyIn:
		e.in, err = r.sizes()
		return err
	case keyOut:
		e.out, err = r.sizes()
		return err
	case keyInTypes:
		e.inTypes, err = r.types()
		return err
	case keyOutTypes:
		e.outTypes, err = r.types()
		return err
	case keyFrames:
		e.stack, err = r.stack()
		return err
	}
	f, err := r.s.field()
	if err == nil {
		r.plain(e, k, name, f)
	}
	return err
}

func (r *jsonReader) plain(e *Entry, k key, name []byte, f field) {
	switch k {
	case keyRecord:
		r.set(&e.Record, f)
	case keyPG:
		r.set(&e.PG, f)
	case keyColl, keySeq:
		r.set(&e.Coll, f)
	case keyP2P:
		r.set(&e.P2P, f)
	case keyOp:
		r.set(&e.Op, f)
	case keyCreated:
		r.set(&e.Created, f)
	case keyStartSeen:
		r.set(&e.StartSeen, f)
	case keyEndSeen:
		r.set(&e.EndSeen, f)
	case keyTimeout:
		r.set(&e.Timeout, f)
	case keyThreadName:
		e.thread = r.textField(f)
	case keyThreadID:
		e.threadID = r.textField(f)
	case keyProfilingName:
		e.name = r.textField(f)
	case keyRetired:
		e.Retired = r.truth(f)
	case keyIsP2P:
		e.IsP2P = r.truth(f)
	case keyDuration:
		if x, ok := f.float(); ok && x >= 0 {
			e.Duration = x
		} else if f.kind != 'n' {
			r.d.Stats.BadFields++
		}
	case keyState:
		if e.State = stateOf(string(f.text)); e.State == Unstated {
			r.d.Stats.BadFields++
		}
	default:
		r.unknownKey(name)
	}
}

// set sets a number; null leaves it.
func (r *jsonReader) set(to *int64, f field) {
	if n, ok := f.int(); ok {
		*to = n
	} else if f.kind != 'n' {
		r.d.Stats.BadFields++
	}
}

func (r *jsonReader) truth(f field) bool {
	if f.kind != 't' && f.kind != 'f' {
		r.d.Stats.BadFields++
	}
	return f.kind == 't'
}

// textField returns the number of a text; null is the empty one.
func (r *jsonReader) textField(f field) int32 {
	if f.kind != '"' && f.kind != '0' {
		if f.kind != 'n' {
			r.d.Stats.BadFields++
		}
		return 0
	}
	return r.text(f.text)
}

// pair reads ["name", "description"].
func (r *jsonReader) pair() (int32, error) {
	if r.s.peek() != '[' {
		r.d.Stats.BadFields++
		_, err := r.s.skip()
		return 0, err
	}
	var texts [2]int32
	n := 0
	err := r.s.list(func() error {
		f, err := r.s.field()
		if err == nil && n < len(texts) {
			texts[n] = r.textField(f)
		}
		n++
		return err
	})
	if n != len(texts) {
		r.d.Stats.BadFields++
		return 0, err
	}
	return r.tag(texts[0], texts[1]), err
}

func (r *jsonReader) sizes() (int32, error) {
	if r.s.peek() != '[' {
		r.d.Stats.BadFields++
		_, err := r.s.skip()
		return 0, err
	}
	s, good := newSizes(r.scratch), true
	err := r.s.list(func() error {
		if r.s.peek() != '[' {
			good = false
			_, err := r.s.skip()
			return err
		}
		err := r.s.list(func() error {
			f, err := r.s.field()
			n, ok := f.int()
			good = good && ok && s.dim(n)
			return err
		})
		good = good && s.close()
		return err
	})
	r.scratch = s.key
	if !good || err != nil {
		r.d.Stats.BadFields++
		return 0, err
	}
	return r.shape(s.key), nil
}

func (r *jsonReader) types() (int32, error) {
	if r.s.peek() != '[' {
		r.d.Stats.BadFields++
		_, err := r.s.skip()
		return 0, err
	}
	t, good := newTypes(r.scratch), true
	err := r.s.list(func() error {
		f, err := r.s.field()
		good = good && f.kind == '"' && t.add(f.text)
		return err
	})
	r.scratch = t.text
	if !good || err != nil {
		r.d.Stats.BadFields++
		return 0, err
	}
	return r.text(t.end()), nil
}
