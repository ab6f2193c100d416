// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// Gathered is one dump of a file that may hold those of many ranks.
type Gathered struct {
	Dump *Dump
	// Err is why there is no Dump.
	Err error
	// Rank is what the file says of the dump's rank; -1: nothing.
	Rank int64
	Host string // empty: not said
}

// Release gives the memory of the dumps to the next ones.
func Release(all []Gathered) {
	for i := range all {
		if all[i].Dump != nil {
			all[i].Dump.Release()
		}
	}
}

// errBehind says that something follows a dump.
var errBehind = errors.New("bytes behind the dump")

// DecodeAll reads the dumps that a file holds: one, as PyTorch writes it, or those that a script
// gathered: a dictionary by rank, objects with the dump among rank and host, or a list of these.
// JSON may have one value a line, each also as JSON within a string, or a pickle in base64; a pickle
// has the dumps as values, or each as bytes.
func DecodeAll(data []byte, o Options) []Gathered {
	o = o.withDefaults()
	if len(data) > o.Limits.Pickle.Bytes {
		return []Gathered{{Err: fmt.Errorf("read dump: got %d bytes; want at most %d", len(data), o.Limits.Pickle.Bytes), Rank: -1}}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !single(data, o.Limits.Pickle) {
		if out := gather(data, o); len(out) > 0 {
			return out
		}
	}
	d, err := Decode(data, o)
	if errors.Is(err, errBehind) {
		if out := gather(data, o); len(out) > 1 {
			return out
		}
	}
	if out, e := fromPickle(data, d, err, o); len(out) > 0 {
		return out
	} else if e != nil {
		d, err = nil, e
	}
	g := Gathered{Dump: d, Err: err, Rank: -1}
	if d != nil {
		g.Rank, g.Host = d.Rank, d.Host
	}
	return []Gathered{g}
}

// pickled is the first byte of a pickle.
const pickled = 0x80

// fromPickle reads a pickle that is no dump itself as one that holds dumps. An error says how to write
// what is not read.
func fromPickle(data []byte, d *Dump, err error, o Options) ([]Gathered, error) {
	list := d != nil && d.Version == (Version{}) && d.Stats.BadEntries > 0
	if len(data) == 0 || data[0] != pickled || err == nil && !list {
		return nil, nil
	}
	out, before, e := gatherPickle(data, o)
	switch {
	case errors.Is(e, pickle.ErrRefused), errors.Is(e, pickle.ErrLimit):
		e = fmt.Errorf("%w; write the dumps of several ranks as JSON lines or as one file per rank", e)
	case before == 0:
		return out, nil
	}
	if d != nil && before == 0 { // a list of operations
		return nil, nil
	}
	return out, e
}

// single reports whether data begins with a dump itself: no JSON, or JSON whose first value has the
// keys of a dump, or is a list of operations.
func single(data []byte, limit pickle.Limits) bool {
	s := scan{b: data, limit: limit}
	switch s.peek() {
	case '{':
		return firstKey(&s, func(k key) bool { return k >= keyVersion })
	case '[':
		s.i++
		return s.peek() != '{' && s.peek() != '"' || firstKey(&s, key.ofEntry)
	case '"':
		return false
	}
	return true
}

var errStop = errors.New("stop")

// firstKey reports whether an object has a key of this kind.
func firstKey(s *scan, is func(key) bool) bool {
	found := false
	_ = s.object(func(name []byte) error {
		if found = is(keyOf(name)); found {
			return errStop
		}
		_, err := s.skip()
		return err
	})
	return found
}

// Limits of gathered files.
const (
	maxGathered = 1 << 17 // dumps of one file
	maxNested   = 4       // objects, lists and strings around a dump
	minQuoted   = 16      // bytes of a string that may hold a dump
)

// gatherer walks the values around dumps.
type gatherer struct {
	o    Options
	left int // bytes that strings may still hold
	out  []Gathered
}

// gather returns the dumps within JSON values that follow one another.
func gather(data []byte, o Options) []Gathered {
	g := &gatherer{o: o, left: o.Limits.Pickle.Bytes}
	s := scan{b: data, limit: o.Limits.Pickle}
	s.limit.Text = s.limit.Bytes
	for s.peek() != 0 {
		start := s.i
		_, err := s.skip()
		end := s.i
		if err != nil {
			end = len(data)
		}
		g.value(data[start:end], -1, "", 0)
		if err != nil {
			break
		}
	}
	return g.out
}

// member is one of an object, or an element of a list.
type gathered struct{ name, value []byte }

// members lists what an object or a list holds. Of what is cut off the last one is cut, too.
func (g *gatherer) members(data []byte) (out []gathered) {
	s := scan{b: data, limit: g.o.Limits.Pickle}
	s.limit.Text = s.limit.Bytes
	take := func(name []byte) error {
		s.peek()
		start := s.i
		_, err := s.skip()
		end := s.i
		if errors.Is(err, pickle.ErrTruncated) {
			end = len(data)
		} else if err != nil {
			return err
		}
		if len(out) < maxGathered && start < len(data) {
			out = append(out, gathered{name, data[start:end]})
		}
		return err
	}
	if s.peek() == '{' {
		_ = s.object(take) // what was whole counts
	} else {
		_ = s.list(func() error { return take(nil) })
	}
	return out
}

// value finds the dumps in a value that rank and host are said of.
func (g *gatherer) value(data []byte, rank int64, host string, depth int) {
	if len(data) == 0 || depth > maxNested || len(g.out) >= maxGathered {
		return
	}
	switch data[0] {
	case '{':
		g.object(data, rank, host, depth)
	case '[':
		s := scan{b: data, i: 1, limit: g.o.Limits.Pickle}
		if s.peek() == '{' && firstKey(&s, key.ofEntry) {
			g.dump(data, rank, host)
			return
		}
		for _, m := range g.members(data) {
			g.value(m.value, rank, host, depth+1)
		}
	case '"':
		g.text(data, rank, host, depth)
	}
}

func (g *gatherer) object(data []byte, rank int64, host string, depth int) {
	members := g.members(data)
	isDump := false
	for _, m := range members {
		isDump = isDump || keyOf(m.name) >= keyVersion
		if r, ok := rankField(m.name, m.value); ok {
			rank = r
		}
		if h, ok := hostField(m.name, m.value); ok {
			host = h
		}
	}
	if isDump {
		g.dump(data, rank, host)
		return
	}
	for _, m := range members {
		of := rank
		if n, _, ok := RankOf(string(m.name)); ok && len(m.name) < maxName {
			of = n
		}
		g.value(m.value, of, host, depth+1)
	}
}

// text reads a string that holds JSON, or a pickle in base64.
func (g *gatherer) text(data []byte, rank int64, host string, depth int) {
	if len(data) < minQuoted || len(data) > g.left {
		return
	}
	var inner string
	if json.Unmarshal(data, &inner) != nil {
		return
	}
	g.left -= len(data)
	content := bytes.TrimSpace([]byte(inner))
	if len(content) > 0 && (content[0] == '{' || content[0] == '[' || content[0] == '"') {
		g.value(content, rank, host, depth+1)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(inner)
	if err == nil && len(raw) > 2 && raw[0] == pickled {
		g.dump(raw, rank, host)
	}
}

func (g *gatherer) dump(data []byte, rank int64, host string) {
	d, err := Decode(data, g.o)
	if d != nil && d.Rank >= 0 {
		rank = d.Rank
	}
	if d != nil && d.Host != "" {
		host = d.Host
	}
	g.out = append(g.out, Gathered{Dump: d, Err: err, Rank: rank, Host: host})
}

// rankField reads the rank of a member that is one.
func rankField(name, value []byte) (int64, bool) {
	switch string(name) {
	case "rank", "global_rank", "rank_id":
	default:
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 10, 64)
	return n, err == nil && n >= 0 && n < maxRank
}

// hostField reads the host of a member that is one.
func hostField(name, value []byte) (string, bool) {
	var host string
	if !isHost(name) || len(value) > maxName || json.Unmarshal(value, &host) != nil || host == "" {
		return "", false
	}
	return host, true
}

// isHost reports whether a member of this name is the host.
func isHost(name []byte) bool {
	switch string(name) {
	case "host", "hostname", "host_name", "node":
		return true
	}
	return false
}
