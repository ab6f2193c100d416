// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Decode reads what Encode wrote. The state refers to nothing of b.
func Decode(b []byte) (model.RankState, error) {
	var d Decoder
	return d.Decode(b)
}

// Decoder reads the states of many ranks and shares the lists of members that they have in
// common, which nobody must change: 16,384 ranks of one job would hold 2 GiB of them. The
// zero value is ready; it is not safe for concurrent use.
type Decoder struct {
	lists   *bounded.Map[string, []int64] // by their form
	strings []string                      // of the last state, for their room
}

const (
	// maxShared bounds what a Decoder keeps to share, bytes: all ranks of a job of 131,072 in
	// some sixty large groups each, or in a dozen groups of eight.
	maxShared = 64 << 20
	// listBytes is what a list takes beside its form and its ranks.
	listBytes   = 256
	bytesOfRank = 8
)

func bytesOfList(form string, ranks []int64) int {
	return listBytes + len(form) + bytesOfRank*len(ranks)
}

// list returns the ranks that form encodes, which expand reads where they are not known. Where there is no
// room for another list, all lists leave: those of jobs that ended go with them.
func (d *Decoder) list(form []byte, expand func() []int64) []int64 {
	if d.lists == nil {
		d.lists = bounded.NewMap(bounded.MapConfig[string, []int64]{Bytes: maxShared, Size: bytesOfList})
	}
	if ranks, ok := d.lists.Peek(string(form)); ok {
		return ranks
	}
	ranks, key := expand(), string(form)
	if !d.lists.Fits(key, ranks) {
		d.lists.Clear()
	}
	d.lists.Set(key, ranks)
	return ranks
}

// Decode is as the function of that name.
func (d *Decoder) Decode(b []byte) (model.RankState, error) {
	var s model.RankState
	err := d.DecodeTo(b, &s)
	return s, err
}

// DecodeTo does so into s, whose slices of operations, communicators, frontiers and call stacks
// it uses again: nobody else may hold them. s is zero but for these after an error.
func (d *Decoder) DecodeTo(b []byte, s *model.RankState) error {
	unused, err := d.read(b, s, false)
	if err == nil && unused > maxUnused {
		_, err = d.read(b, s, true)
	}
	if err != nil {
		reuse(s)
	}
	return err
}

// maxUnused bounds how many bytes of strings that it does not use a state keeps: its texts are
// parts of one string, which lives as long as any of them.
const maxUnused = 4 << 10

// read returns how many bytes of strings no text uses; with apart, each text has memory of its own.
func (d *Decoder) read(b []byte, s *model.RankState, apart bool) (unused int, err error) {
	reuse(s)
	r := reader{data: b, shared: d, room: MaxMembers, strings: d.strings[:0], apart: apart}
	r.whole(s)
	clear(r.strings) // their text is the state's alone
	d.strings = r.strings[:0]
	return r.listed - r.used, r.err
}

// reuse empties a state but for the room of its slices.
func reuse(s *model.RankState) {
	*s = model.RankState{Comms: s.Comms[:0], Ops: s.Ops[:0], Stacks: s.Stacks[:0]}
}

// sized returns n zero elements, in the room of list where that is enough.
func sized[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

type reader struct {
	data    []byte // to the end of what may be read
	at      int
	err     error
	strings []string // the first is empty
	shared  *Decoder
	room    int // for members
	// listed is the length of all strings, used that of those that texts are, as often as they are.
	listed, used int
	apart        bool
}

// fail keeps the first error.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("decode rank state: byte %d: "+format, append([]any{r.at}, args...)...)
	}
}

func (r *reader) whole(s *model.RankState) {
	head := len(magic) + 1
	switch {
	case len(r.data) > MaxBytes:
		r.fail("got %d bytes; want at most %d", len(r.data), MaxBytes)
	case len(r.data) < head || string(r.data[:len(magic)]) != magic:
		r.fail("got no %q and version", magic)
	case r.data[len(magic)] != Version:
		r.fail("got version %d; want %d", r.data[len(magic)], Version)
	}
	if r.err != nil {
		return
	}
	all := r.data
	var seen uint64
	for r.at = head; r.err == nil && r.at < len(all); {
		tag := r.uvarint()
		n := r.bytes("a section", MaxBytes)
		if r.err != nil || tag >= sectionsEnd {
			r.at += n // of a newer writer: not for us
			continue
		}
		if seen>>tag != 0 {
			r.fail("got section %d again or out of order", tag)
			return
		}
		seen |= 1 << tag
		r.data = all[:r.at+n]
		r.section(tag, s)
		if r.err == nil && r.at != len(r.data) {
			r.fail("got %d bytes behind the end of section %d", len(r.data)-r.at, tag)
		}
		r.data = all
	}
	if r.err == nil && seen|1<<sectionHost != 1<<sectionsEnd-1<<sectionStrings {
		r.fail("got no section %d", bits.TrailingZeros64(^(seen | 1)))
	}
	for i := range s.Ops {
		if got := s.Ops[i].Stack; got > len(s.Stacks) {
			r.fail("read operation: got call stack %d of %d", got, len(s.Stacks))
		}
	}
}

func (r *reader) section(tag uint64, s *model.RankState) {
	switch tag {
	case sectionStrings:
		r.table()
	case sectionRank:
		r.rank(&s.Rank)
	case sectionState:
		r.state(s)
	case sectionComms:
		r.comms(s)
	case sectionOps:
		r.ops(s)
	case sectionStacks:
		r.stacks(s)
	case sectionHost:
		s.HostStack = r.text()
	default:
		r.fail("got section %d; want at least %d", tag, sectionStrings)
	}
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.data[r.at:])
	if n <= 0 {
		r.fail("read number: got none in %d bytes", len(r.data)-r.at)
		return 0
	}
	r.at += n
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads how many of what follow.
func (r *reader) count(what string, limit int) int {
	return r.within(r.uvarint(), "number of ", what, limit)
}

// records reads how many records follow, each of at least size bytes, so that none is made
// that can not be there.
func (r *reader) records(what string, limit, size int) int {
	v := r.uvarint()
	return r.within(v, "number of ", what, min(limit, (len(r.data)-r.at)/size))
}

// bytes reads how long what follows is.
func (r *reader) bytes(what string, limit int) int {
	v := r.uvarint()
	return r.within(v, "length of ", what, min(limit, len(r.data)-r.at))
}

func (r *reader) within(v uint64, unit, what string, limit int) int {
	if v > uint64(limit) {
		r.fail("read %s%s: got %d; want at most %d", unit, what, v, limit)
		return 0
	}
	return int(v)
}

func (r *reader) mask(end uint64) uint64 {
	m := r.uvarint()
	if m >= end {
		r.fail("read flags: got %#x; want less than %#x", m, end)
		return 0
	}
	return m
}

func (r *reader) float() float64 {
	v := math.Float64frombits(bits.ReverseBytes64(r.uvarint()))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		r.fail("read number: got %v; want a finite one", v)
	}
	return v
}

func (r *reader) optFloat(known bool) (o model.Optional[float64]) {
	if known {
		o = model.Some(r.float())
	}
	return o
}

func (r *reader) optInts(mask, first uint64, to ...*model.Optional[int64]) {
	for i, o := range to {
		if mask&(first<<i) != 0 {
			*o = model.Some(r.varint())
		}
	}
}

func (r *reader) text() string {
	ref := r.uvarint()
	if ref >= uint64(len(r.strings)) && r.err == nil {
		r.fail("read string: got place %d in a table of %d", ref, len(r.strings))
	}
	if r.err != nil {
		return ""
	}
	text := r.strings[ref]
	r.used += len(text)
	if r.apart {
		return strings.Clone(text)
	}
	return text
}

func (r *reader) texts(to ...*string) {
	for _, t := range to {
		*t = r.text()
	}
}

// table reads the strings, all as parts of one.
func (r *reader) table() {
	n := r.records("strings", MaxStrings, 1)
	base, whole := r.at, string(r.data[r.at:]) // one allocation for all
	r.strings = sized(r.strings, n+1)[:1]
	for range n {
		length := r.bytes("a string", MaxString)
		if r.err != nil {
			return
		}
		r.strings = append(r.strings, whole[r.at-base:r.at-base+length])
		r.at += length
		r.listed += length
	}
}
