// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// item is one file and what is kept of it.
type item struct {
	path, prefix string
	// fileLen is how many bytes of path name the file, 0: all. The rest says which of its dumps it is.
	fileLen, part int
	more          []item // the file's other dumps
	settled       bool   // whose it is was read
	host          string // that the file says
	rank          int64
	named         bool // it is known whose it is
	byName        bool // its name tells that
	size          int64
	sum           uint64 // of its content
	stamps        stamps
	changed       time.Time

	err      error // why there is no state
	problems []string
	state    []byte           // rankstate
	light    *model.RankState // what tells dumps apart
	timeout  time.Duration    // the longest of its operations
	pause    time.Duration    // that the rank made at times
	version  string
	entries  int64
	stacks   bool

	tells  bool   // it says of any operation that it was, or how far its rank came
	until  int64  // when it had been written for certain, Unix ns; 0: unknown
	copyOf string // the file of the same content that is taken
	alone  string // why it is of no incident
}

// from is the file that holds the dump.
func (it *item) from() string {
	if it.fileLen == 0 {
		return it.path
	}
	return it.path[:it.fileLen]
}

// lightOps is how many operations of a state are kept to tell whether two dumps are of one
// process: what is open is open in both.
const lightOps = 4

// read reads a file; what goes wrong is in the item.
func (it *item) read(o *Options, cache *flightrecorder.Cache, stacks bool) {
	info, err := os.Stat(it.from())
	if err != nil {
		it.err = bare(err)
		return
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		it.err = fmt.Errorf("read dump: got %s; want a regular file", regular.Kind(info.Mode()))
		return
	}
	if it.part == 0 { // the size is that of the file once
		it.size = info.Size()
	}
	it.changed = info.ModTime()
	all, err := flightrecorder.ReadAll(it.from(), flightrecorder.Options{Stacks: stacks, Limits: o.Limits, Cache: cache})
	if err != nil {
		it.err = bare(err)
		return
	}
	defer flightrecorder.Release(all)
	if it.part >= len(all) {
		it.err = errors.New("read dump: the file has fewer dumps than before")
		return
	}
	if it.part == 0 && len(all) > 1 && !stacks {
		it.others(all)
	}
	it.take(&all[it.part], len(all))
}

// others makes an item of each further dump of a file that holds several.
func (it *item) others(all []flightrecorder.Gathered) {
	file := it.from()
	name := func(k int) string { return fmt.Sprintf("%s (%d of %d)", file, k+1, len(all)) }
	for k := 1; k < len(all); k++ {
		more := item{path: name(k), prefix: it.prefix, changed: it.changed, fileLen: len(file), part: k}
		more.take(&all[k], len(all))
		it.more = append(it.more, more)
	}
	it.path, it.fileLen = name(0), len(file)
}

// take makes the item that of one dump of a file of so many.
func (it *item) take(g *flightrecorder.Gathered, of int) {
	if of > 1 && !it.settled {
		it.named, it.byName = false, false // the file's name speaks of none of them
	}
	if g.Rank >= 0 && !it.settled {
		if it.named && it.rank != g.Rank {
			it.problems = append(it.problems, fmt.Sprintf("take it for the dump of rank %d, which stands in it: its name says %d", g.Rank, it.rank))
		}
		it.rank, it.named, it.byName, it.host = g.Rank, true, true, g.Host
	}
	it.host, it.settled = g.Host, true
	if g.Err != nil {
		it.err = bare(g.Err)
		return
	}
	d := g.Dump
	it.problems, it.sum = append(it.problems, d.Problems...), d.Sum
	if d.Partial != "" {
		it.problems = append(it.problems, "read as far as it goes: "+d.Partial)
	}
	it.version, it.entries, it.stacks = d.Version.String(), int64(len(d.Entries)), d.Stacks
	if it.err = it.ownRank(d); it.err != nil {
		return
	}
	it.keep(d)
}

// ownRank settles whose dump it is. A process has only groups of which it is a member: a
// name that says another rank is wrong.
func (it *item) ownRank(d *flightrecorder.Dump) error {
	member := func(g flightrecorder.Group) bool { return len(g.Ranks) == 0 || slices.Contains(g.Ranks, it.rank) }
	wrong := slices.IndexFunc(d.Groups, func(g flightrecorder.Group) bool { return g.Name != "" && !member(g) })
	if it.named && wrong < 0 {
		return nil
	}
	own, ok := frwatch.OwnRank(d.Groups)
	switch {
	case ok && it.named:
		it.problems = append(it.problems, fmt.Sprintf("take it for the dump of rank %d: its name says %d, which is no member of its process group %q", own, it.rank, d.Groups[wrong].Name))
	case ok:
	case it.named:
		return fmt.Errorf("find rank of dump: its name says %d, which is no member of its process group %q", it.rank, d.Groups[wrong].Name)
	default:
		return errors.New("find rank of dump: got no rank in it, and no number at the end of its name; want one of both, or --rank-pattern")
	}
	it.rank, it.named, it.byName = own, true, false
	return nil
}

// keep makes the small forms of a dump.
func (it *item) keep(d *flightrecorder.Dump) {
	s := d.State(model.Rank{Rank: it.rank, HostName: it.host}, filepath.Base(it.path), flightrecorder.StateOptions{})
	// The file's time is that of the dump only where it is that of the newest operation, too:
	// who copies files changes it.
	if age := it.changed.Sub(time.Unix(0, s.LastEnqueue)); s.LastEnqueue > 0 && age >= 0 && age < freshFor {
		s.Time = it.changed.UnixNano()
	}
	for i := range s.Ops {
		it.timeout = max(it.timeout, time.Duration(s.Ops[i].Timeout.Or(0)*float64(time.Second)))
	}
	it.until, it.tells = it.writtenBy(&s), tells(&s)
	it.pause, it.stamps = pause(d), stampsOf(d)
	it.state = rankstate.Encode(&s)
	it.light = lightOf(&s, it.path)
}

// lightOf returns the part of a state that distinguishes it from others.
func lightOf(s *model.RankState, path string) *model.RankState {
	light := model.RankState{Rank: s.Rank, Name: path, LastEnqueue: s.LastEnqueue, LibVersion: s.LibVersion, Partial: s.Partial, OnlyActive: s.OnlyActive}
	light.Comms = make([]model.CommState, 0, len(s.Comms))
	for i := range s.Comms {
		c := &s.Comms[i]
		light.Comms = append(light.Comms, model.CommState{Comm: model.Comm{ID: c.Comm.ID, Name: c.Comm.Name, Digest: c.Comm.Digest, Size: c.Comm.Size}, Members: c.Members})
	}
	for i := range s.Ops {
		if o := &s.Ops[i]; !o.Done && len(light.Ops) < lightOps {
			light.Ops = append(light.Ops, model.StateOp{Kind: o.Kind, Comm: o.Comm, Seq: o.Seq, Created: o.Created})
		}
	}
	return &light
}

// compared drops what is not needed once it is known of which incident the dump is.
func (it *item) compared() { it.light.Comms, it.light.Ops = nil, nil }

// tells reports whether a state says anything that can be compared.
func tells(s *model.RankState) bool {
	return len(s.Ops) > 0 || slices.ContainsFunc(s.Comms, func(c model.CommState) bool {
		return slices.ContainsFunc(c.Frontiers, func(f model.Frontier) bool { return f.Enqueued.Or(-1) >= 0 || f.Completed.Or(-1) >= 0 })
	})
}

// bare drops the path of a file error: problems name the file already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("read dump: %w", pe.Err)
	}
	return err
}
