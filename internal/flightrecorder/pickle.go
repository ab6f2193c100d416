// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// Tokens of dicts that were taken while the pickle was read. Those of frames count from 0.
const (
	tokenEntry int32 = -1
	tokenFrame int32 = -2 // one that nobody asked for
)

// pickleReader gives the values of a pickle their meaning.
type pickleReader struct {
	*builder
	m      *pickle.Machine
	byText map[int]members // of groups, by the number of the text that lists them

	// Of a pickle that holds several dumps: where the texts and the frames of this one begin.
	all        *pickleGather
	firstText  int
	firstFrame int32
}

func (b *builder) pickle(data []byte) error {
	r := &pickleReader{builder: b, m: pickle.NewMachine(data, pickle.DataOnly, b.o.Limits.Pickle), byText: map[int]members{}}
	defer r.m.Release()
	r.m.Take = r.take
	top, err := r.m.Run()
	if errors.Is(err, pickle.ErrTruncated) {
		var ok bool
		if top, ok = r.m.Salvage(); !ok {
			return err
		}
	}
	if err != nil && !errors.Is(err, pickle.ErrTruncated) {
		return err
	}
	if e := r.top(top); e != nil {
		return e
	}
	return err
}

// take turns entries and frames into what they are as soon as they are complete.
func (r *pickleReader) take(pairs []pickle.Value, whole bool) (int32, bool) {
	for i := 0; i < len(pairs); i += 2 {
		switch k := r.key(pairs[i]); {
		case k.ofEntry():
			switch {
			case !whole:
				r.d.Stats.EntriesCut++
			case len(r.d.Entries) >= r.o.Limits.Entries:
				r.d.Stats.Entries++
				r.d.Stats.EntriesDropped++
			default:
				r.entry(pairs)
			}
			return tokenEntry, true
		case k == keyFilename || k == keyLine:
			return r.frame(pairs), true
		}
	}
	return 0, false
}

// key returns what a dict's key means.
func (r *pickleReader) key(v pickle.Value) key {
	if id := v.TextID(); v.Kind() == pickle.String && id < len(r.keys) && r.keys[id] != keyNew {
		return r.keys[id]
	}
	return r.lookUp(v)
}

func (r *pickleReader) lookUp(v pickle.Value) key {
	if v.Kind() != pickle.String {
		return keyUnknown
	}
	id := v.TextID()
	if id >= len(r.keys) {
		r.keys = append(r.keys, make([]key, id+1-len(r.keys))...)
	}
	r.keys[id] = keyOf(r.m.Text(v))
	return r.keys[id]
}

// id returns the number of a text; None is the empty one.
func (r *pickleReader) id(v pickle.Value) int32 {
	if id := v.TextID() - r.firstText; v.Kind() == pickle.String && uint(id) < uint(len(r.ids)) && r.ids[id] != 0 {
		return r.ids[id] - 1
	}
	return r.newID(v)
}

func (r *pickleReader) newID(v pickle.Value) int32 {
	if v.Kind() != pickle.String {
		if v.Kind() != pickle.None {
			r.d.Stats.BadFields++
		}
		return 0
	}
	id := v.TextID() - r.firstText
	if id < 0 { // a text of a dump before
		return r.text(r.m.Text(v))
	}
	if id >= len(r.ids) {
		r.ids = append(r.ids, make([]int32, id+1-len(r.ids))...)
	}
	r.ids[id] = r.text(r.m.Text(v)) + 1
	return r.ids[id] - 1
}

// int sets a number; None leaves it.
func (r *pickleReader) int(to *int64, v pickle.Value) {
	switch v.Kind() {
	case pickle.Int:
		*to = v.Int()
	case pickle.None:
	case pickle.String:
		if n, err := strconv.ParseInt(string(r.m.Text(v)), 10, 64); err == nil {
			*to = n
			return
		}
		r.d.Stats.BadFields++
	default:
		r.d.Stats.BadFields++
	}
}

func (r *pickleReader) bool(to *bool, v pickle.Value) {
	if v.Kind() != pickle.Bool && v.Kind() != pickle.Int {
		r.d.Stats.BadFields++
		return
	}
	*to = v.Int() != 0
}

func (r *pickleReader) entry(pairs []pickle.Value) {
	e := emptyEntry
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		switch r.key(pairs[i]) {
		case keyRecord:
			r.int(&e.Record, v)
		case keyPG:
			r.int(&e.PG, v)
		case keyProcessGroup:
			e.tag = r.group(v)
		case keyThreadName:
			e.thread = r.id(v)
		case keyThreadID:
			e.threadID = r.id(v)
		case keyColl, keySeq:
			r.int(&e.Coll, v)
		case keyP2P:
			r.int(&e.P2P, v)
		case keyOp:
			r.int(&e.Op, v)
		case keyProfilingName:
			e.name = r.id(v)
		case keyCreated:
			r.int(&e.Created, v)
		case keyStartSeen:
			r.int(&e.StartSeen, v)
		case keyEndSeen:
			r.int(&e.EndSeen, v)
		case keyDuration:
			r.duration(&e, v)
		case keyIn:
			e.in = r.sizes(v)
		case keyOut:
			e.out = r.sizes(v)
		case keyInTypes:
			e.inTypes = r.types(v)
		case keyOutTypes:
			e.outTypes = r.types(v)
		case keyState:
			r.state(&e, v)
		case keyRetired:
			r.bool(&e.Retired, v)
		case keyTimeout:
			r.int(&e.Timeout, v)
		case keyIsP2P:
			r.bool(&e.IsP2P, v)
		case keyFrames:
			e.stack = r.stack(v)
		default:
			r.unknownKey(r.m.Text(pairs[i]))
		}
	}
	r.addEntry(&e)
}

func (r *pickleReader) duration(e *Entry, v pickle.Value) {
	switch {
	case v.Kind() == pickle.Float && v.Float() >= 0 && !math.IsInf(v.Float(), 0):
		e.Duration = v.Float()
	case v.Kind() == pickle.Int && v.Int() >= 0:
		e.Duration = float64(v.Int())
	case v.Kind() != pickle.None:
		r.d.Stats.BadFields++
	}
}

func (r *pickleReader) state(e *Entry, v pickle.Value) {
	if e.State = stateOf(r.d.texts[r.id(v)]); e.State == Unstated {
		r.d.Stats.BadFields++
	}
}

func stateOf(s string) State {
	switch s {
	case "scheduled":
		return Scheduled
	case "started":
		return Started
	case "completed":
		return Completed
	}
	return Unstated
}

// group reads (name, description).
func (r *pickleReader) group(v pickle.Value) int32 {
	items := r.m.Items(v)
	if len(items) != 2 || v.Kind() == pickle.Dict {
		r.d.Stats.BadFields++
		return 0
	}
	return r.tag(r.id(items[0]), r.id(items[1]))
}

// sizes reads a list of lists of numbers.
func (r *pickleReader) sizes(v pickle.Value) int32 {
	s := newSizes(r.scratch)
	ok := r.gather(&s, v)
	r.scratch = s.key
	if !ok {
		r.d.Stats.BadFields++
		return 0
	}
	return r.shape(s.key)
}

func (r *pickleReader) gather(s *sizes, v pickle.Value) bool {
	if v.Kind() != pickle.List && v.Kind() != pickle.Tuple {
		return false
	}
	for _, tensor := range r.m.Items(v) {
		if tensor.Kind() != pickle.List && tensor.Kind() != pickle.Tuple {
			return false
		}
		for _, n := range r.m.Items(tensor) {
			if n.Kind() != pickle.Int || !s.dim(n.Int()) {
				return false
			}
		}
		if !s.close() {
			return false
		}
	}
	return true
}

// types reads a list of names.
func (r *pickleReader) types(v pickle.Value) int32 {
	items := r.m.Items(v)
	if len(items) == 1 && v.Kind() == pickle.List {
		return r.id(items[0])
	}
	t, ok := newTypes(r.scratch), v.Kind() == pickle.List || v.Kind() == pickle.Tuple
	for i := 0; ok && i < len(items); i++ {
		ok = t.add(r.m.Text(items[i]))
	}
	r.scratch = t.text
	if !ok {
		r.d.Stats.BadFields++
		return 0
	}
	return r.text(t.end())
}

// frame returns a frame's number.
func (r *pickleReader) frame(pairs []pickle.Value) int32 {
	if !r.o.Stacks || len(r.frames) >= r.o.Limits.Distinct {
		return tokenFrame
	}
	var f Frame
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1]; r.key(pairs[i]) {
		case keyName:
			f.Name = r.d.texts[r.id(v)]
		case keyFilename:
			f.File = r.d.texts[r.id(v)]
		case keyLine:
			r.int(&f.Line, v)
		}
	}
	r.frames = append(r.frames, f)
	return r.firstFrame + int32(len(r.frames)-1)
}

// maxRecorded bounds the frames of a call stack: PyTorch's are some tens deep.
const maxRecorded = 256

// stack returns the number of a call stack.
func (r *pickleReader) stack(v pickle.Value) int32 {
	r.d.Stacks = r.d.Stacks || len(r.m.Items(v)) > 0
	if !r.o.Stacks {
		return 0
	}
	b := r.scratch[:0]
	frames := r.m.Items(v)
	for _, f := range frames[:min(len(frames), maxRecorded)] {
		if token, ok := r.m.Taken(f); ok && token >= r.firstFrame {
			token -= r.firstFrame
			b = append(b, byte(token), byte(token>>8), byte(token>>16))
		}
	}
	r.scratch = b
	if n, ok := r.stackOf[string(b)]; ok {
		return n
	}
	stack := make([]Frame, 0, len(b)/3)
	for i := 0; i < len(b); i += 3 {
		stack = append(stack, r.frames[int(b[i])|int(b[i+1])<<8|int(b[i+2])<<16])
	}
	return r.addStack(b, stack)
}

// top reads the whole: a dict, or in dumps of before 1.1 the list of entries alone.
func (r *pickleReader) top(v pickle.Value) error {
	if v.Kind() == pickle.List {
		return r.entries(v)
	}
	if v.Kind() != pickle.Dict {
		return fmt.Errorf("got %v; want a dict or a list of entries", v.Kind())
	}
	if _, ok := r.m.Taken(v); ok {
		return errors.New("got a dict of another kind; want a dump")
	}
	return r.whole(r.m.Items(v))
}

// whole reads the keys and values of a dump.
func (r *pickleReader) whole(items []pickle.Value) error {
	known := 0
	for i := 0; i < len(items); i += 2 {
		k := r.key(items[i])
		if k >= keyVersion {
			known++
		}
		if err := r.part(k, items[i], items[i+1]); err != nil {
			return err
		}
	}
	if known == 0 {
		return errors.New("got a dict without version and entries; want a dump")
	}
	return nil
}

func (r *pickleReader) part(k key, name, v pickle.Value) (err error) {
	switch k {
	case keyVersion:
		r.d.Version, err = parseVersion(string(r.m.Text(v)))
		return err
	case keyLibVersion:
		r.d.LibVersion = r.d.texts[r.id(v)]
	case keyEntries:
		return r.entries(v)
	case keyGroups:
		r.groups(v)
	case keyStatus:
		r.statuses(v)
	default:
		if rank, ok := r.rankOf(name, v); ok {
			r.d.Rank = rank
			return nil
		}
		if host, ok := r.hostOf(name, v); ok {
			r.d.Host = host
			return nil
		}
		r.extra(r.m.Text(name), len(r.m.Items(v)), v.Kind() == pickle.Dict)
	}
	return nil
}

func (r *pickleReader) entries(v pickle.Value) error {
	if v.Kind() != pickle.List {
		return fmt.Errorf("read entries: got %v; want a list", v.Kind())
	}
	for _, e := range r.m.Items(v) {
		if token, ok := r.m.Taken(e); !ok || token != tokenEntry {
			r.d.Stats.Entries++
			r.d.Stats.BadEntries++
		}
	}
	return nil
}

func (r *pickleReader) groups(v pickle.Value) {
	items := r.m.Items(v)
	if v.Kind() != pickle.Dict || len(items)%2 != 0 {
		r.d.Stats.BadFields++
		return
	}
	for i := 0; i < len(items); i += 2 {
		name := r.m.Text(items[i])
		var desc []byte
		var of members
		for pairs := r.fields(items[i+1]); len(pairs) > 0; pairs = pairs[2:] {
			switch v := pairs[1]; r.key(pairs[0]) {
			case keyName:
				name = r.m.Text(v)
			case keyDesc:
				desc = r.m.Text(v)
			case keyRanks:
				of = r.membersOf(v)
			}
		}
		r.addGroup(name, desc, of)
	}
}

// maxFields bounds the keys of a group and its status that are looked at: there are three,
// and many groups may share one dict.
const maxFields = 32

// fields returns keys and values of a small dict.
func (r *pickleReader) fields(v pickle.Value) []pickle.Value {
	if v.Kind() != pickle.Dict {
		r.d.Stats.BadFields++
		return nil
	}
	pairs := r.m.Items(v)
	return pairs[:min(len(pairs), 2*maxFields)]
}

// membersOf reads the text that lists a group's ranks. Many groups may share one; it is
// read once.
func (r *pickleReader) membersOf(v pickle.Value) members {
	if v.Kind() != pickle.String {
		r.d.Stats.BadFields++
		return members{}
	}
	m, ok := r.byText[v.TextID()]
	if !ok {
		m = r.members(r.m.Text(v))
		r.byText[v.TextID()] = m
	}
	return m
}

func (r *pickleReader) statuses(v pickle.Value) {
	items := r.m.Items(v)
	if v.Kind() != pickle.Dict {
		r.d.Stats.BadFields++
		return
	}
	for i := 0; i < len(items); i += 2 {
		s := Status{ID: -1, Enqueued: -1, Started: -1, Completed: -1}
		r.int(&s.ID, items[i])
		for pairs := r.fields(items[i+1]); len(pairs) > 0; pairs = pairs[2:] {
			switch v := pairs[1]; r.key(pairs[0]) {
			case keyEnqueued:
				r.int(&s.Enqueued, v)
			case keyStarted:
				r.int(&s.Started, v)
			case keyCompleted:
				r.int(&s.Completed, v)
			}
		}
		if s.ID >= 0 {
			r.addStatus(s)
		}
	}
}

// extra notes a part that is not interpreted.
func (b *builder) extra(name []byte, items int, paired bool) {
	if paired {
		items /= 2
	}
	if len(b.d.Extras) >= maxUnknownKeys {
		b.d.Stats.Overflow++
		return
	}
	b.d.Extras = append(b.d.Extras, Extra{fmt.Sprintf("%.40s", name), max(items, 1)})
}
