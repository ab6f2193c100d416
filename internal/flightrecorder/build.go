// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// builder makes a Dump. Texts, groups, sizes and stacks are kept once each.
type builder struct {
	o Options
	d *Dump

	textOf  map[string]int32
	tagOf   map[[2]int32]int32
	shapeOf map[string]int32
	stackOf map[string]int32
	frames  []Frame
	unknown map[string]int64 // keys
	scratch []byte
	room    int // members of groups that may still be read

	// Of a pickle, by the number of a text in it: its key, and its number here + 1.
	keys []key
	ids  []int32
}

// What an entry takes of a dump with few stacks, bytes: for how many to reserve room.
const (
	pickleEntryBytes = 130
	jsonEntryBytes   = 450
)

func newBuilder(o Options, size int, f Format) *builder {
	each := pickleEntryBytes
	if f == JSON {
		each = jsonEntryBytes
	}
	d := &Dump{
		texts: []string{""}, tags: []Tag{{}}, shapes: []Shape{{}}, stacks: [][]Frame{nil},
		Entries: roomFor(min(size/each, o.Limits.Entries)), Format: f, Rank: -1,
	}
	d.Stats.Bytes = int64(size)
	return &builder{
		o: o, d: d, room: roomFactor * o.Limits.Members, textOf: map[string]int32{"": 0}, tagOf: map[[2]int32]int32{{}: 0},
		shapeOf: map[string]int32{}, stackOf: map[string]int32{"": 0},
	}
}

// released is the room for the entries of dumps that nobody uses any more.
var released sync.Pool

// maxReleased bounds the entries of one dump whose room is kept for the next.
const maxReleased = 1 << 16

// Release gives the dump's memory to the next one. It, and what refers to its entries, may not be used
// any more.
func (d *Dump) Release() {
	if n := cap(d.Entries); n > 0 && n <= maxReleased {
		room := d.Entries
		released.Put(&room)
	}
	*d = Dump{}
}

// roomFor is room for so many entries.
func roomFor(n int) []Entry {
	if room, ok := released.Get().(*[]Entry); ok && cap(*room) >= n {
		return (*room)[:0]
	}
	return make([]Entry, 0, n)
}

// emptyEntry has nothing recorded.
var emptyEntry = Entry{Record: -1, PG: -1, Coll: -1, P2P: -1, Op: -1, Duration: -1}

// maxName bounds names and descriptions: the longest known, element types of coalesced
// operations, are some kilobytes.
const maxName = 16 << 10

// text returns the number of a text.
func (b *builder) text(s []byte) int32 {
	if len(s) > maxName {
		b.d.Stats.Overflow++
		return 0
	}
	if n, ok := b.textOf[string(s)]; ok {
		return n
	}
	if len(b.d.texts) >= b.o.Limits.Distinct {
		b.d.Stats.Overflow++
		return 0
	}
	n := int32(len(b.d.texts))
	t := strings.ToValidUTF8(string(s), "\uFFFD")
	b.d.texts = append(b.d.texts, t)
	b.textOf[string(s)] = n
	return n
}

func (b *builder) tag(name, desc int32) int32 {
	k := [2]int32{name, desc}
	if n, ok := b.tagOf[k]; ok {
		return n
	}
	if len(b.d.tags) >= b.o.Limits.Groups {
		b.d.Stats.Overflow++
		return 0
	}
	n := int32(len(b.d.tags))
	b.d.tags = append(b.d.tags, Tag{b.d.texts[name], b.d.texts[desc]})
	b.tagOf[k] = n
	return n
}

// shape returns the number of sizes.
func (b *builder) shape(key []byte) int32 {
	if n, ok := b.shapeOf[string(key)]; ok {
		return n
	}
	if len(b.d.shapes) >= b.o.Limits.Distinct {
		b.d.Stats.Overflow++
		return 0
	}
	n := int32(len(b.d.shapes))
	b.d.shapes = append(b.d.shapes, shapeOf(key))
	b.shapeOf[string(key)] = n
	return n
}

// addStack keeps a call stack under a key, and returns its number; 0 where there is no room.
func (b *builder) addStack(key []byte, frames []Frame) int32 {
	if len(b.d.stacks) >= b.o.Limits.Distinct {
		b.d.Stats.Overflow++
		return 0
	}
	n := int32(len(b.d.stacks))
	b.d.stacks = append(b.d.stacks, frames)
	b.stackOf[string(key)] = n
	return n
}

func (b *builder) addEntry(e *Entry) {
	b.d.Stats.Entries++
	switch {
	case e.name == 0, e.Coll < 0 && e.P2P <= 0 && !e.IsP2P: // nobody else has an operation without a number
		b.d.Stats.BadEntries++
	case len(b.d.Entries) >= b.o.Limits.Entries:
		b.d.Stats.EntriesDropped++
	default:
		b.d.Entries = append(b.d.Entries, *e)
	}
}

// addGroup takes a group of pg_config.
func (b *builder) addGroup(name, desc []byte, of members) {
	if len(b.d.Groups) >= b.o.Limits.Groups {
		b.d.Stats.Overflow++
		return
	}
	tag := Tag{b.d.texts[b.text(name)], b.d.texts[b.text(desc)]}
	b.d.Groups = append(b.d.Groups, Group{Tag: tag, Ranks: of.ranks, digest: of.digest})
}

// members reads the ranks of a group: "[0, 1, 2]".
func (b *builder) members(text []byte) members {
	m, known := b.o.Cache.get(text)
	if known {
		return m
	}
	m, ok := readMembers(text, min(b.o.Limits.Members, b.room))
	if !ok {
		b.d.Stats.BadFields++
		b.problem(fmt.Sprintf("leave out the ranks of a process group: got %.60q; want a list of different ranks, at most %d, and %d of all groups",
			text, b.o.Limits.Members, roomFactor*b.o.Limits.Members))
		return members{}
	}
	b.room -= len(m.ranks)
	b.o.Cache.put(text, m)
	return m
}

// roomFactor is how many times the members of the largest group all groups of a dump may
// have: a rank is in some tens of groups, few of which have all ranks.
const roomFactor = 4

func (b *builder) addStatus(s Status) {
	if len(b.d.Status) >= b.o.Limits.Groups {
		b.d.Stats.Overflow++
		return
	}
	b.d.Status = append(b.d.Status, s)
}

// The limits of what is told of one dump; the counters go on.
const (
	maxProblems    = 16
	maxUnknownKeys = 16
)

func (b *builder) problem(what string) {
	if len(b.d.Problems) < maxProblems {
		b.d.Problems = append(b.d.Problems, what)
	}
}

func (b *builder) unknownKey(k []byte) {
	b.d.Stats.UnknownKeys++
	if b.unknown == nil {
		b.unknown = map[string]int64{}
	}
	if name := fmt.Sprintf("%.40s", k); b.unknown[name] > 0 || len(b.unknown) < maxUnknownKeys {
		b.unknown[name]++
	}
}

// finish puts the dump in order and says what was wrong with it.
func (b *builder) finish() (*Dump, error) {
	d := b.d
	slices.SortStableFunc(d.Status, func(x, y Status) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortStableFunc(d.Groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Desc, y.Desc))
	})
	for _, k := range slices.Sorted(maps.Keys(b.unknown)) {
		b.problem(fmt.Sprintf("pass over key %q: not known", k))
	}
	s := &d.Stats
	for _, c := range []struct {
		n    int64
		what string
	}{
		{s.BadEntries, "leave out %d operations: got no name or no number; want both"},
		{s.EntriesDropped, fmt.Sprintf("leave out %%d operations: the limit of %d is reached", b.o.Limits.Entries)},
		{s.EntriesCut, "leave out %d operations: cut off"},
		{s.BadFields, "pass over %d fields: not of the type that they have in dumps"},
		{s.Overflow, "pass over %d names, sizes, groups or stacks: a limit is reached"},
	} {
		if c.n > 0 {
			b.problem(fmt.Sprintf(c.what, c.n))
		}
	}
	if d.Partial == "" && s.BadEntries+s.EntriesDropped+s.Overflow > 0 {
		d.Partial = fmt.Sprintf("%d of %d operations could not be taken", s.BadEntries+s.EntriesDropped, s.Entries)
	}
	return d, nil
}
