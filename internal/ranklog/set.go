// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// place is a line of a file.
type place struct {
	file int
	line int64
}

// Limits of what is kept of all logs. Beyond them lines are counted in Set.Dropped.
const (
	maxRecords = 1 << 18 // ranks, and processes whose rank is not known
	maxWorks   = 64      // operations that one rank waits in
	maxGroups  = 64      // groups of one rank
)

// progress is how far a rank had come on a group.
type progress struct {
	group
	groupRank           int64
	enqueued, completed int64
	at                  place
	log                 int
}

// waits is an operation that a rank waits in.
type waits struct {
	group
	groupRank int64
	work
	ran   int64 // ms
	at    place
	log   int    // that it is in
	spell int64  // lines of one spell of a log are of one life, those of two may be of two
	stamp moment // of the first line
	over  ending
}

// ending is how it is known that nobody waits any more.
type ending int

const (
	open     ending = iota
	passed          // a later line of the rank says that the operation is over
	outlived        // the job was started again
)

// fall is a fall of the numbers of a rank, between two lines.
type fall struct{ from, to place }

// record is what is known of one process.
type record struct {
	waits    []waits
	progress []progress
	fault    fault
	lines    int64 // ordinary ones behind errors and orders, as far as these are looked at
	after    int64 // those that follow the fault
	last     place
	stuck    place // where its watchdog was said to stand still
	stuckIn  group // the group of that line
	stuckFor int64 // s; 0: not written
	endedIn  group // of the line by which its watchdog reported an error that ended it
	isStuck  bool
	first    place
	trace    int // lines that a traceback may still have
	steps    steps
	errors   []ownError // at most maxNoted
	spell    int64
	falls    []fall
	older    []oldFault // of earlier spells, at most maxNoted
	parted   bool       // lines of it are of an earlier life
	doubtful bool       // of which life its error is, is not known
	seen     *seen      // what the log had before the fault
	stamped  moment     // its last time; 0: none
	ran      []place    // the last ordinary line in each file, at most maxRan
	order    order
	bars     bars
	lastEnd  shape  // the last line about an error or an end
	most     weight // that the error of the next traceback may have; weightNone: any
}

// oldFault is an error, and how many lines of its process followed it.
type oldFault struct {
	fault
	after int64
}

// ownError is an exception that a process wrote.
type ownError struct {
	kind string
	at   place
}

// source is the origin of lines without a rank: a file, within it a label, and
// within that the rank in the group of old lines.
type source struct {
	file      int
	label     string
	groupRank int64 // -1: none
}

// origin is what is known of a source beside its lines.
type origin struct {
	said  int64 // the rank of its label or file name; -1: none
	by    trust
	ranks []int64 // of its lines, at most two
}

// trust is the kind of a number in a label or a name.
type trust int

const (
	byNothing trust = iota
	byName          // a file's name has "rank" in it
	byNumber        // a file's name or folder has a number
	byMPI           // mpirun's rank
	byTask          // srun's task
	byLocal         // torchrun's rank in the node
	byRay           // "[rank=3]"
)

// File is one log.
type File struct {
	Path string
	// Rank is that of the file's name; -1 where it has none. Certain: the name calls it a rank.
	Rank    int64
	Certain bool
	// Log is the log of which the file is a part, and Part the place in it, the older the less; the log itself
	// is 0.
	Log  string
	Part int64
}

// Set takes logs, one after the other. It is not safe for concurrent use.
type Set struct {
	files    []File
	claims   []claims    // by file
	claimed  int         // claims in all
	patterns []patterned // of files, as far as asked for
	ranks    map[int64]*record
	sources  map[source]*record
	origins  map[source]*origin
	exits    map[int64]exit
	tasks    map[int64]exit  // as srun numbers them
	reported map[int64]bool  // ranks that others report a time-out of
	heard    map[int64]place // the last such report, unless it is of an earlier life
	nameless map[int64]place // the last time-out of which a line, that is cut, does not name the operation; -1: no rank either
	unplaced unplaced
	closing  place // where a launcher says that it ends the ranks that are left; line 0: nowhere
	ordered  place // where an order to end the job precedes the time-outs of a log; line 0: nowhere
	world    int64
	notes    int64 // lines of the watchdog
	alarms   int64 // lines that say that something is stuck
	// subgroups: groups that lines do not name are several.
	subgroups bool
	past      int // ranks whose waits are over
	lives     lives
	parts     []logPart // of the files
	logs      map[string]int
	spells    []int64 // of the logs
	courses   []*course
	begins    []place // lines that say that the job is started again, the last ones
	restarts  []place // all of them, at most maxRestarts
	now       place
	stamp     moment
	folded    int64   // processes of which Ray left out such a line at most, since others wrote it, too
	stray     []fault // errors whose rank is not known, at most maxNoted
	// statements are what ranks report of others, in the order of the logs; met: those by which all others
	// reached a barrier.
	statements, met []statement
	someOf          bool // these wait in a group that may not have all ranks
	// turnedRound is how many lines a file has that begins with the newest.
	turnedRound map[int]int64
	cut         map[int]bool // files whose end was not read
	// Dropped counts lines that found no room. Bytes are those read.
	Dropped, Bytes int64
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{
		ranks: map[int64]*record{}, sources: map[source]*record{}, origins: map[source]*origin{}, exits: map[int64]exit{}, tasks: map[int64]exit{}, reported: map[int64]bool{}, heard: map[int64]place{}, nameless: map[int64]place{}, logs: map[string]int{}, turnedRound: map[int]int64{}, cut: map[int]bool{},
	}
}

// Read takes one log. What was read before an error is kept.
func (s *Set) Read(f File, r io.Reader) error {
	s.files = append(s.files, f)
	s.claims = append(s.claims, claims{})
	part := s.partOf(&f)
	s.parts = append(s.parts, part)
	l := reader{
		set: s, file: len(s.files) - 1, log: part.log, killed: -1,
		last: map[string]*record{}, summaries: map[string]*summary{}, stops: map[string]*stops{}, courses: map[courseOf]*course{}, ends: map[string]*seen{},
	}
	defer l.end()
	base := &origin{said: -1}
	if f.Rank >= 0 {
		base.said, base.by = f.Rank, byNumber
		if f.Certain {
			base.by = byName
		}
	}
	s.origins[source{l.file, "", -1}] = base
	if f.Rank >= 0 {
		s.record(source{l.file, "", -1}, place{l.file, 1})
	}
	text := newDecoder(r)
	turned, err := eachText(text, func(number int64, from string, line []byte) {
		s.Bytes += int64(len(line)) + 1
		l.line(place{l.file, number}, from, line)
	})
	if turned > 0 {
		s.turnedRound[l.file] = turned
	}
	if err == nil && text.blank() {
		delete(s.sources, source{l.file, "", -1}) // it is not known to have written nothing
		err = ErrBlank
	}
	if err != nil {
		s.cut[l.file] = true
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	return nil
}

// Has reports whether there is any line of the watchdog.
func (s *Set) Has() bool { return s.notes > 0 }

// reader reads one log.
type reader struct {
	set                     *Set
	file                    int
	last                    map[string]*record // by label: whose traceback goes on
	requeued                bool               // Slurm ended the job to start it again: steps that follow are of another life
	summaries               map[string]*summary
	closed                  bool   // the launcher ended the ranks that were left
	timed                   bool   // a line says that an operation timed out
	firsts                  []exit // tasks of srun that ended before that
	log                     int
	stops                   map[string]*stops // by label
	courses                 map[courseOf]*course
	moved                   bool             // since the last stop a process went on, or began
	faulty                  int64            // the line of its last error; 0: none
	order                   order            // of lines of no process: of a launcher
	ends                    map[string]*seen // by label: what the log had before the last error
	kinds                   kinds
	counted                 map[uint64]counted // the highest count of each kind of line
	latest                  moment             // the last time of an ordinary line or an error; 0: none
	killed                  int64              // the task that srun said to be killed; -1: none
	wrapped                 wrapped
	width, widest, endWidth int   // characters: of this line, of the widest, of the last line of an end
	ended                   int64 // the last line of an end; 0: none
	asWide                  int   // lines as wide as the widest
	began                   int64 // the line at which the job was started again
}

// restart begins another life of the job.
func (l *reader) restart() {
	l.closed, l.timed, l.firsts = false, false, nil
	l.order, l.killed, l.began = order{}, -1, l.set.now.line
	l.set.restart(l.file)
}

// courseOf is a process in one log.
type courseOf struct {
	label string
	rank  int64
}

// maxLabels bounds the labels of one file that are held apart.
const maxLabels = 1 << 16

func (l *reader) line(at place, from string, raw []byte) {
	clean := text(raw)
	tag, rest := labelled(clean)
	if from != "" {
		tag.text = strings.TrimSpace(tag.text + " " + from)
	}
	p := piece{at: at, tag: tag, rest: rest, stamp: stampOf(clean)}
	if !l.unwrap(&p, clean) {
		l.process(&p)
	}
}

// process takes a line that a process wrote.
func (l *reader) process(p *piece) {
	at, tag, rest := p.at, p.tag, p.rest
	if p.width > l.widest {
		l.widest, l.asWide = p.width, 0
	}
	if l.width = p.width; p.width == l.widest {
		l.asWide++
	}
	l.set.now, l.set.stamp = at, p.stamp
	segments(rest, func(rank int64, s []byte) {
		l.segment(tag, rank, s, at)
	})
	m := l.summaries[tag.text]
	if m == nil {
		if len(l.summaries) >= maxLabels {
			return
		}
		m = &summary{}
		l.summaries[tag.text] = m
	}
	if e, ok := m.line(rest, at); ok {
		if old, known := l.set.exits[e.rank]; (!known || e.root || !old.root) && len(l.set.exits) < maxRecords {
			l.set.exits[e.rank] = e
		}
	}
	l.launcher(rest, at)
	l.raylet(tag.text, rest, at)
	l.set.claims[l.file].state(rest)
	l.requeued = l.requeued || bytes.Contains(rest, []byte("DUE TO JOB REQUEUE"))
	if restarted(rest) {
		l.restart()
	}
	if n, ok := worldSize(rest); ok {
		l.set.world = max(l.set.world, n)
	}
}

// segment takes what one rank wrote.
func (l *reader) segment(tag label, rank int64, s []byte, at place) {
	said := parse(s)
	l.claim(tag, rank, &said, at)
	if said.noted || alarm(s) {
		l.set.alarms++
	}
	if !said.hasWork && bytes.Contains(s, markCut) && groupError(s) && len(l.set.nameless) < maxRecords {
		l.set.nameless[l.ownerOf(tag, rank)] = at
	}
	from := source{l.file, tag.text, -1}
	o := l.set.origin(from, tag)
	var rec *record
	switch {
	case rank >= 0:
		o.sees(rank)
		rec = l.set.rank(rank, at)
	case said.noted && said.groupRank >= 0:
		rec = l.set.record(source{l.file, tag.text, said.groupRank}, at)
	default:
		rec = l.unmarked(from, s, at)
	}
	if rec == nil {
		l.set.Dropped++
		return
	}
	if len(bytes.TrimSpace(s)) > 0 {
		rec.last = at
	}
	if rec.order.got && rec.order.at.file == l.file && rec.order.at.line <= l.began {
		rec.order = order{}
	}
	toEnd := l.ordered(tag, rank, rec, s, at)
	moved := rec.bars.moved(s)
	if said.noted {
		l.set.notes++
		if !l.timed && l.order.given() && l.set.ordered.line == 0 {
			l.set.ordered = l.order.at
		}
		l.timed = true
		l.set.folded = max(l.set.folded, folded(s))
		said.log, said.spell, said.stamp = l.log, l.stop(tag.text, true), l.set.stamp
		rec.note(&said, at)
		if said.from >= 0 && said.from <= maxRank && len(l.set.reported) < maxRecords {
			l.set.reported[said.from] = true
			l.set.heard[said.from] = at
		}
		return
	}
	l.statement(tag, rank, s, at)
	rec.most = max(rec.most, aside(s))
	if bytes.Contains(s, []byte("Traceback (most recent call last)")) {
		rec.trace = maxTrace
		if len(l.last) < maxLabels || l.last[tag.text] != nil {
			l.last[tag.text] = rec
		}
		return
	}
	text, w := faultOf(s, rec.trace > 0)
	switch {
	case w != weightNone:
		l.faulty = at.line
		l.noteEnd(at)
		if w > weightResult && (l.order.given() || rec.order.given()) {
			w = weightResult
		}
		if rec.most != weightNone && rec.trace > 0 {
			w = min(w, rec.most)
		}
		rec.begin(l.stop(tag.text, false))
		l.sees(rec, s)
		l.before(tag.text, rec, at)
		rec.fail(fault{text: text, weight: w, at: at, first: at, stamp: l.set.stamp})
	case rec.trace > 0:
		rec.trace--
	case l.continuesEnd(at):
		l.noteEnd(at)
	default:
		ordinary := l.goOn(tag.text, rank, s, at)
		if ordinary && l.ofBuffer(tag.text, rank, rec, s) {
			return
		}
		l.sees(rec, s)
		if rec.steps.line(s, at) && l.requeued {
			l.requeued = false
			l.restart()
		}
		if !toEnd {
			l.noteOrdinary(rec, rank, s, at, moved)
		}
	}
}

// ownerOf is the rank of a line by its mark, its label or its file; -1: none of them says it.
func (l *reader) ownerOf(tag label, rank int64) int64 {
	if rank < 0 {
		rank = tag.rank
	}
	if f := &l.set.files[l.file]; rank < 0 && f.Certain {
		rank = f.Rank
	}
	return rank
}

// unmarked returns the process of a line without a mark of its rank.
func (l *reader) unmarked(from source, s []byte, at place) *record {
	if of, in, ok := endOfWatchdog(s); ok {
		from.groupRank = in
		rec := l.set.record(from, at)
		if rec != nil {
			rec.endedIn = of
		}
		return rec
	}
	// The last line of a traceback has no mark of the rank, its first one has.
	if rec := l.last[from.label]; rec != nil && rec.trace > 0 {
		return rec
	}
	return l.set.record(from, at)
}

// fail takes an error. One after which the process went on counts no more.
func (r *record) fail(f fault) {
	r.trace, r.most = 0, weightNone
	if r.wasCaught() {
		r.fault = fault{}
	}
	if r.fault.take(f) {
		r.after = 0
	}
	e := ownError{kindOf(f.text, f.weight), f.at}
	if f.weight > weightResult && len(r.errors) < maxNoted && !slices.ContainsFunc(r.errors, func(old ownError) bool { return old.kind == e.kind && old.at.file == e.at.file }) {
		r.errors = append(r.errors, e)
	}
}

// folded returns how many processes wrote a line that Ray shows once:
// "[repeated 2x across cluster]".
func folded(s []byte) int64 {
	if !bytes.Contains(s, []byte("x across cluster]")) {
		return 0
	}
	n, _ := after(s, "[repeated ")
	return n
}

// restarted reports whether torchrun starts the ranks again.
func restarted(s []byte) bool {
	return bytes.Contains(s, []byte("will restart worker group")) || bytes.Contains(s, []byte("Restarting worker group"))
}

// restart notes that the job is started again: what a log said before is of an earlier life.
func (s *Set) restart(file int) {
	log := s.parts[file].log
	s.spells[log]++
	if len(s.restarts) < maxRestarts {
		s.restarts = append(s.restarts, s.now)
	}
	if n := len(s.begins); n > 0 && s.parts[s.begins[n-1].file].log == log {
		s.begins[n-1] = s.now
		return
	}
	s.begins = append(s.begins, s.now)
}

// worldMarks are texts that precede the number of ranks of the job: torchrun's, DeepSpeed's
// launcher's and that of the environment.
var worldMarks = [][]byte{[]byte("global_world_sizes=["), []byte("dist_world_size="), []byte("WORLD_SIZE=")}

func worldSize(s []byte) (int64, bool) {
	for _, m := range worldMarks {
		i := bytes.Index(s, m)
		if i < 0 || i > 0 && s[i-1] == '_' { // LOCAL_WORLD_SIZE
			continue
		}
		if n, _, ok := number(s[i+len(m):]); ok && n > 0 && n <= maxRank+1 {
			return n, true
		}
	}
	return 0, false
}

func (s *Set) rank(rank int64, at place) *record {
	if r, ok := s.ranks[rank]; ok {
		return r
	}
	if len(s.ranks) >= maxRecords {
		return nil
	}
	r := &record{first: at}
	s.ranks[rank] = r
	return r
}

func (s *Set) record(from source, at place) *record {
	if r, ok := s.sources[from]; ok {
		return r
	}
	if len(s.sources) >= maxRecords {
		return nil
	}
	r := &record{first: at}
	s.sources[from] = r
	return r
}

func (s *Set) origin(from source, tag label) *origin {
	if o, ok := s.origins[from]; ok {
		return o
	}
	o := &origin{said: tag.rank}
	switch {
	case tag.rank < 0:
	case bytes.HasPrefix([]byte(tag.text), []byte("mpi ")):
		o.by = byMPI
	case bytes.HasPrefix([]byte(tag.text), []byte("task ")):
		o.by = byTask
	case bytes.HasPrefix([]byte(tag.text), []byte("local ")):
		o.by = byLocal
	default:
		o.by = byRay
	}
	if len(s.origins) < maxRecords {
		s.origins[from] = o
	}
	return o
}

// sees notes a rank of a line of the source.
func (o *origin) sees(rank int64) {
	if len(o.ranks) < 2 && !slices.Contains(o.ranks, rank) {
		o.ranks = append(o.ranks, rank)
	}
}

// note takes a line of the watchdog.
func (r *record) note(s *said, at place) {
	if s.stuck && !r.isStuck {
		r.isStuck, r.stuck, r.stuckIn = true, at, s.group
	}
	r.stuckFor = max(r.stuckFor, s.stuckFor)
	if s.hasStatus {
		r.close(s, at)
		r.advance(s, at)
	}
	if s.hasWork {
		r.wait(s, at)
	}
}

// close marks what is over, or has a number above that of all work: it is of an earlier hang in the same
// log, and in the second case of an earlier life.
func (r *record) close(s *said, at place) {
	r.waits = slices.DeleteFunc(r.waits, func(w waits) bool {
		return w.log != s.log && w.group == s.group && (w.seq <= s.completed || w.seq > s.enqueued)
	})
	var from place
	fell := false
	for i := range r.waits {
		w := &r.waits[i]
		switch {
		case w.group != s.group || w.over != open:
		case w.seq > s.enqueued:
			w.over, fell, from = outlived, true, w.at
		case w.seq <= s.completed:
			w.over = passed
		}
	}
	for i := range r.progress {
		if p := &r.progress[i]; p.group == s.group && p.log == s.log && s.enqueued < p.completed {
			fell, from = true, p.at
		}
	}
	if fell && len(r.falls) < maxNoted {
		r.falls = append(r.falls, fall{from, at})
	}
}

func (r *record) advance(s *said, at place) {
	i := slices.IndexFunc(r.progress, func(p progress) bool { return p.group == s.group })
	if i < 0 {
		if len(r.progress) >= maxGroups {
			return
		}
		i = len(r.progress)
		r.progress = append(r.progress, progress{group: s.group, groupRank: s.groupRank, enqueued: -1, completed: -1, at: at, log: s.log})
	}
	p := &r.progress[i]
	if s.enqueued < p.completed { // the job was started again
		p.enqueued, p.completed = -1, -1
	}
	if s.enqueued >= p.enqueued {
		p.enqueued, p.at, p.log = s.enqueued, at, s.log
	}
	p.completed = max(p.completed, s.completed)
}

// survived reports whether its rank went on for long after its fault: it caught that.
func (r *record) survived() bool {
	const most = 100 // lines that programs and libraries write when a process ends
	return r.fault.weight != weightNone && (r.after > most || r.steps.follow(r.fault.at))
}

// wasCaught reports whether the process went on after its error.
func (r *record) wasCaught() bool { return r.survived() || r.wentOn() }

// begin begins a spell: the error of an earlier one is kept apart.
func (r *record) begin(spell int64) {
	if r.fault.weight != weightNone && spell != r.spell {
		r.fault.caught = r.wasCaught()
		if len(r.older) == maxNoted {
			r.older = append(r.older[:0], r.older[1:]...)
		}
		r.older = append(r.older, oldFault{r.fault, r.after})
		r.fault = fault{}
	}
	r.spell = spell
}

// wait adds an operation, or what this line adds to it: the line that names the operation
// does not name the group, the one behind it does the other way round.
func (r *record) wait(s *said, at place) {
	for i := range r.waits {
		w := &r.waits[i]
		same := w.seq == s.work.seq && (w.group == s.group || w.unnamed() || s.group.unnamed()) && (w.op == s.work.op || w.op == "" || s.work.op == "")
		if !same || w.log == s.log && w.spell != s.spell {
			continue
		}
		if w.unnamed() {
			w.group = s.group
		}
		if w.op == "" || w.shape == "" && s.work.shape != "" {
			w.work = s.work
		}
		w.ran, w.groupRank = max(w.ran, s.ran), max(w.groupRank, s.groupRank)
		if at.file == w.at.file {
			w.at.line = max(w.at.line, at.line)
		}
		if w.stamp == 0 {
			w.stamp = s.stamp
		}
		return
	}
	if len(r.waits) >= maxWorks {
		if i := slices.IndexFunc(r.waits, func(w waits) bool { return w.over != open }); i >= 0 {
			r.waits = slices.Delete(r.waits, i, i+1)
		}
	}
	if len(r.waits) < maxWorks {
		r.waits = append(r.waits, waits{group: s.group, groupRank: s.groupRank, work: s.work, ran: s.ran, at: at, log: s.log, spell: s.spell, stamp: s.stamp})
	}
}

// join adds another record of the same rank.
func (r *record) join(o *record) {
	for i := range o.waits {
		w := &o.waits[i]
		if w.over != open {
			if len(r.waits) < maxWorks {
				r.waits = append(r.waits, *w)
			}
			continue
		}
		r.wait(&said{group: w.group, groupRank: w.groupRank, work: w.work, ran: w.ran, log: w.log, spell: w.spell, stamp: w.stamp}, w.at)
	}
	r.falls = append(r.falls, o.falls[:min(len(o.falls), max(0, maxNoted-len(r.falls)))]...)
	r.older = append(r.older, o.older[:min(len(o.older), max(0, maxNoted-len(r.older)))]...)
	for i := range o.progress {
		p := &o.progress[i]
		r.advance(&said{group: p.group, groupRank: p.groupRank, enqueued: p.enqueued, completed: p.completed, log: p.log}, p.at)
	}
	r.steps.join(&o.steps)
	r.errors = append(r.errors, o.errors[:min(len(o.errors), max(0, maxNoted-len(r.errors)))]...)
	for _, at := range o.ran {
		r.runs(at)
	}
	if r.wasCaught() {
		r.begin(max(r.spell, o.spell) + 1)
	}
	other := o
	if r.fault.weight != weightNone && o.fault.weight != weightNone && r.fault.at.file == o.fault.at.file && r.spell != o.spell {
		before := oldFault{o.fault, o.after}
		if r.fault.at.line < before.at.line {
			before = oldFault{r.fault, r.after}
			before.caught = r.wasCaught()
			r.fault, r.after, r.spell, r.seen, other = o.fault, o.after, o.spell, o.seen, r
		} else {
			before.caught = o.wasCaught()
		}
		if len(r.older) < maxNoted {
			r.older = append(r.older, before)
		}
	} else if !o.wentOn() && r.fault.take(o.fault) {
		r.after, r.spell, r.seen, other = o.after, o.spell, o.seen, r
	}
	r.obey(o.order)
	if other.last.file == r.fault.at.file { // lines of the rank without its number
		r.after = max(r.after, min(other.lines, other.last.line-r.fault.at.line))
	}
	r.lines += o.lines
	if o.last.line > r.last.line || r.last.file != o.last.file {
		r.last = o.last
	}
	if o.isStuck && !r.isStuck {
		r.isStuck, r.stuck, r.stuckIn = true, o.stuck, o.stuckIn
	}
	r.stuckFor = max(r.stuckFor, o.stuckFor)
}

func (s *Set) where(at place) string {
	if n := s.turnedRound[at.file]; n > 0 {
		at.line = n + 1 - at.line
	}
	return fmt.Sprintf("%s:%d", s.files[at.file].Path, at.line)
}
