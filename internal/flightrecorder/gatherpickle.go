// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// tokenDump is the token of the first dump of a gathered pickle; those of further dumps are lower.
const tokenDump int32 = -3

// gatherCost is what a value of a dump counts against the bytes that a file may have: dumps may
// share values, which each of them keeps.
const gatherCost = 64

// pickleGather keeps the dumps of a pickle that holds those of many ranks.
type pickleGather struct {
	gatherer
	made  []Gathered // by token
	spent int
	steps int // values that may still be looked at
	stop  error
}

// gatherPickle returns the dumps within the dictionaries, lists, bytes and texts of a pickle, and
// where there is an error, how many dumps it has found before.
func gatherPickle(data []byte, o Options) (out []Gathered, before int, err error) {
	g := &pickleGather{gatherer: gatherer{o: o, left: o.Limits.Pickle.Bytes}, steps: o.Limits.Pickle.Values}
	limits := o.Limits.Pickle
	limits.Text = limits.Bytes // a dump may be one text
	b := newBuilder(o, 0, Pickle)
	r := &pickleReader{builder: b, m: pickle.NewMachine(data, pickle.DataOnly, limits), byText: map[int]members{}, all: g}
	defer r.m.Release()
	r.m.Take = r.takeGathered
	top, err := r.m.Run()
	if errors.Is(err, pickle.ErrTruncated) {
		var ok bool
		if top, ok = r.m.Salvage(); ok {
			err = nil
		}
	}
	if err == nil {
		err = g.stop
	}
	if err != nil {
		return nil, len(g.made), fmt.Errorf("read dump: %w", err)
	}
	r.place(top, -1, "", 0)
	return g.out, 0, nil
}

// takeGathered takes dumps, too.
func (r *pickleReader) takeGathered(pairs []pickle.Value, whole bool) (int32, bool) {
	if r.all.stop != nil {
		return 0, false
	}
	isDump, wraps := r.looks(pairs, whole)
	switch {
	case isDump && len(r.all.made) >= maxGathered:
		r.all.stop = fmt.Errorf("got more than %d dumps; want at most that", maxGathered)
		return 0, false
	case isDump:
		return r.takeDump(pairs, whole), true
	case wraps:
		return 0, false
	}
	return r.take(pairs, whole)
}

// looks reports whether a dict is a dump, or else holds what can be one.
func (r *pickleReader) looks(pairs []pickle.Value, whole bool) (isDump, wraps bool) {
	var has [keyLibVersion + 1]bool
	for i := 0; i < len(pairs); i += 2 {
		k, v := r.key(pairs[i]), pairs[i+1]
		if k.ofEntry() {
			return false, false
		}
		has[k] = true
		token, taken := r.m.Taken(v)
		wraps = wraps || taken && token <= tokenDump || v.Kind() == pickle.Bytes
	}
	isDump = has[keyEntries] || has[keyVersion] && (has[keyGroups] || has[keyStatus]) || !whole && (has[keyGroups] || has[keyStatus])
	return isDump, wraps
}

// takeDump makes a dump of a dict and of the entries since the last one, and begins the next.
func (r *pickleReader) takeDump(pairs []pickle.Value, whole bool) int32 {
	g, b := r.all, r.builder
	made := Gathered{Rank: -1}
	err := r.whole(pairs)
	if err == nil && !whole {
		b.d.truncated, b.d.Partial = true, "cut off: the pickle ends within it"
	}
	if err == nil {
		made.Dump, err = b.finish()
	}
	if err != nil {
		made.Dump, made.Err = nil, fmt.Errorf("read dump: %w", err)
	} else {
		made.Rank, made.Host = b.d.Rank, b.d.Host
	}
	g.made = append(g.made, made)
	g.spend(r, pairs)
	next := newBuilder(r.o, 0, Pickle)
	next.keys = b.keys
	r.firstFrame += int32(len(b.frames))
	r.firstText = r.m.Texts()
	r.builder = next
	return tokenDump - int32(len(g.made)-1)
}

// spend counts what a dump keeps.
func (g *pickleGather) spend(r *pickleReader, pairs []pickle.Value) {
	n := len(r.d.texts) + len(r.d.shapes) + len(r.d.stacks)
	for i := 1; i < len(pairs); i += 2 {
		n += 1 + len(r.m.Items(pairs[i]))
	}
	g.spent += n * gatherCost
	for _, s := range r.d.texts {
		g.spent += len(s)
	}
	for i := range r.d.shapes {
		g.spent += len(r.d.shapes[i].Text)
	}
	for _, s := range r.d.stacks {
		g.spent += len(s) * gatherCost
	}
	if most := 4 * g.o.Limits.Pickle.Bytes; g.spent > most && g.stop == nil {
		g.stop = fmt.Errorf("%w: got dumps that share more than is kept of one file", pickle.ErrLimit)
	}
}

// place finds the dumps within a value that rank and host are said of.
func (r *pickleReader) place(v pickle.Value, rank int64, host string, depth int) {
	g := r.all
	if g.steps--; g.steps < 0 || depth > maxNested || len(g.out) >= maxGathered {
		return
	}
	switch v.Kind() {
	case pickle.Dict:
		if token, ok := r.m.Taken(v); !ok {
			r.placeDict(v, rank, host, depth)
		} else if token <= tokenDump {
			g.add(g.made[tokenDump-token], rank, host)
		}
	case pickle.List, pickle.Tuple:
		for _, e := range r.m.Items(v) {
			r.place(e, rank, host, depth+1)
		}
	case pickle.Bytes, pickle.String:
		g.content(r.m.Text(v), rank, host, depth)
	}
}

func (r *pickleReader) placeDict(v pickle.Value, rank int64, host string, depth int) {
	items := r.m.Items(v)
	items = items[:min(len(items)&^1, 2*maxGathered)]
	for i := 0; i < len(items); i += 2 {
		if of, ok := r.rankOf(items[i], items[i+1]); ok {
			rank = of
		}
		if of, ok := r.hostOf(items[i], items[i+1]); ok {
			host = of
		}
	}
	for i := 0; i < len(items); i += 2 {
		of := rank
		if n, ok := r.keyRank(items[i]); ok {
			of = n
		}
		r.place(items[i+1], of, host, depth+1)
	}
}

// keyRank is the rank that a key of a dictionary of dumps is.
func (r *pickleReader) keyRank(k pickle.Value) (int64, bool) {
	if k.Kind() == pickle.Int {
		return k.Int(), k.Int() >= 0 && k.Int() < maxRank
	}
	name := r.m.Text(k)
	if len(name) == 0 || len(name) >= maxName {
		return 0, false
	}
	n, _, ok := RankOf(string(name))
	return n, ok
}

// rankOf reads the rank of a member that is one.
func (r *pickleReader) rankOf(k, v pickle.Value) (int64, bool) {
	if k.Kind() != pickle.String {
		return 0, false
	}
	text := r.m.Text(v)
	if v.Kind() == pickle.Int {
		text = strconv.AppendInt(nil, v.Int(), 10)
	}
	return rankField(r.m.Text(k), text)
}

// hostOf reads the host of a member that is one.
func (r *pickleReader) hostOf(k, v pickle.Value) (string, bool) {
	if k.Kind() != pickle.String || v.Kind() != pickle.String || !isHost(r.m.Text(k)) {
		return "", false
	}
	host := r.m.Text(v)
	return string(bytes.ToValidUTF8(host, []byte("\uFFFD"))), len(host) > 0 && len(host) <= maxName
}

// add takes a dump under the rank and the host that its file says, unless it says them itself.
func (g *gatherer) add(made Gathered, rank int64, host string) {
	if made.Rank < 0 {
		made.Rank = rank
	}
	if made.Host == "" {
		made.Host = host
	}
	g.out = append(g.out, made)
}

// content reads bytes or a text that may be a dump, or hold some.
func (g *gatherer) content(in []byte, rank int64, host string, depth int) {
	if len(in) < minQuoted || len(in) > g.left {
		return
	}
	g.left -= len(in)
	text := bytes.TrimSpace(in)
	switch {
	case in[0] == pickled:
		g.dump(in, rank, host)
	case len(text) > 0 && (text[0] == '{' || text[0] == '[' || text[0] == '"'):
		g.value(text, rank, host, depth+1)
	}
}
