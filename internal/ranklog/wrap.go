// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of a line that a terminal wrapped.
const (
	maxPieces  = 24
	maxWrapped = 4 << 10
	longWord   = 32 // characters that a line has more than the first one, where it is wrapped between words
)

// wrapped is the beginning of a line that a terminal, or a recording of one, wrapped: it has the mark of a
// process group's message, and not the whole message.
type wrapped struct {
	pieces []piece
	width  int // characters of the first piece, with what stands in front of it
	size   int
}

// piece is a line of a file.
type piece struct {
	at    place
	tag   label
	rest  []byte
	stamp moment
	width int
}

var (
	markMismatch = []byte("ismatch between coll")
	// messages are the beginnings of messages in the last line of a traceback.
	messages = [][]byte{
		markMismatch, []byte("atchdog caught coll"), []byte("DistBackendError: [Rank "), []byte("imed out initializing process group in st"), []byte("rror: Timed out after "), []byte("Notify register"),
	}
)

var (
	// header begins a line of a process group's code, or is the beginning of that at the end of a line.
	header = regexp.MustCompile(`(?:\[rank\d+\]:\s?)?\[[EFW]\d*[ \d:.]*ProcessGroup|\[rank\d+\]:\s?\[[EFW][\d :.]*[A-Za-z]*$|\[r(?:a(?:n(?:k(?:\d+(?:\](?::\[?)?)?)?)?)?)?$`)
	// begins is how a line begins that continues no other one.
	begins = regexp.MustCompile(`^\s*(?:\[[EFWI]\d* |Traceback |frame #|#\d+ |terminate called|what\(\):|Exception raised|File ")`)
	spaces = regexp.MustCompile(`\s+`)
)

// phrases are the texts of messages, with their spaces: where a line is wrapped, spaces are lost.
var phrases = func() (out []phrase) {
	for _, text := range []string{
		string(markCaught), string(markStatus), string(markTimeout), string(markException), string(markStuck), string(markHeartbeat), " " + string(markBlocking),
		"Received a dump signal due to a collective timeout from rank ", string(markDump) + " ", " and we will try", " ran for ", " milliseconds before timing out.",
		" PG status: ", "last enqueued work: ", ", last completed work: ", ", last enqueued NCCL work: ", ", last completed NCCL work: ", "Last enqueued NCCL work: ", " seconds without making",
		watchdogEnd, "Detected mismatch between collectives on ranks. ", " is running collective: ", ", but Rank ", "Collectives differ in", " failed to pass monitoredBarrier in ",
	} {
		out = append(out, phrase{spaces.ReplaceAll([]byte(text), nil), []byte(text)})
	}
	return out
}()

type phrase struct{ squeezed, text []byte }

var (
	guidOfPG = regexp.MustCompile(`\[PGID(\d+)PGGUID`)
	rankOfPG = regexp.MustCompile(`(\[PG[^\[\]]*)Rank(\d+)\]`)
	rankMark = regexp.MustCompile(`(\[|\. ?|, ?|but )Rank ?(\d+)`)
	nameOfPG = regexp.MustCompile(`\[PG(\w)`)
)

// unwrapped is the text of pieces with the spaces of messages, wherever they were wrapped.
func unwrapped(s []byte) []byte {
	s = spaces.ReplaceAll(s, nil)
	s = guidOfPG.ReplaceAll(s, []byte("[PG ID ${1} PG GUID "))
	s = nameOfPG.ReplaceAll(s, []byte("[PG ${1}"))
	s = rankOfPG.ReplaceAll(s, []byte("${1} Rank ${2}]"))
	for _, p := range phrases {
		s = bytes.ReplaceAll(s, p.squeezed, p.text)
	}
	return rankMark.ReplaceAll(s, []byte("${1}Rank ${2} "))
}

// ofBarriers are what follows the ranks in the messages of Gloo's monitoredBarrier.
var ofBarriers = []string{"failed to pass monitoredBarrier", "timed out waiting for rank", "timed out in monitoredBarrier", "successfully reached monitoredBarrier"}

// startsBarrier reports whether a line has such a message, or the beginning of one at its end: programs begin lines
// with the rank, too.
func startsBarrier(s []byte) bool {
	_, of, ok := bytes.Cut(s, []byte("]: Rank"))
	if !ok {
		return false
	}
	said := strings.TrimLeft(string(of[:min(len(of), maxFault)]), "s 0123456789,")
	for _, text := range ofBarriers {
		if strings.HasPrefix(said, text) || strings.HasPrefix(text, said) {
			return true
		}
	}
	return false
}

// opensText reports whether a line has the beginning of a message that has no header.
func opensText(s []byte) bool { return containsAny(s, messages) || startsBarrier(s) }

// beginsMessage reports whether a line is the beginning of a message that is not whole.
func beginsMessage(rest []byte) bool {
	return mayBegin(rest) && !whole(rest) && (header.Match(rest) || opensText(rest))
}

// mayBegin is quick, and true for all lines that begin a message.
func mayBegin(rest []byte) bool {
	const most = len("[rank1048575]:[E1116 10:00:00.123456789 ProcessGroup")
	if i := bytes.LastIndexByte(rest, '['); i >= 0 && len(rest)-i <= most && (i+1 == len(rest) || bytes.IndexByte([]byte("rEFW"), rest[i+1]) >= 0) {
		return true
	}
	return bytes.Contains(rest, []byte("ProcessGroup")) || opensText(rest)
}

// whole reports whether a line has a whole message of a process group.
func whole(rest []byte) bool {
	said := parse(rest)
	switch {
	case bytes.Contains(rest, []byte(watchdogEnd)) && !bytes.Contains(rest, []byte(watchdogEnd+"[")):
		const least = 8 // of the text of an error: "launch failure"
		_, e, named := bytes.Cut(rest, []byte("rror: "))
		return named && len(bytes.TrimSpace(e)) >= least
	case said.noted && bytes.Contains(rest, markCaught):
		return bytes.Contains(rest, []byte("illiseconds"))
	case said.noted && said.hasWork && !bytes.Contains(rest, markBlocking):
		return said.hasStatus
	case said.noted:
		return said.hasStatus || !bytes.Contains(rest, markDump)
	}
	st, ok := statementOf(rest)
	return ok && (len(st.calls) == 0 || bytes.Contains(rest, []byte("Collectives differ in")) || bytes.HasSuffix(bytes.TrimSpace(rest), []byte(")")))
}

// unwrap takes a line of a file. It returns true where that is held, as a piece of a wrapped line.
func (l *reader) unwrap(p *piece, raw []byte) bool {
	w := &l.wrapped
	p.width = utf8.RuneCount(bytes.TrimRight(raw, "\r"))
	if len(w.pieces) > 0 {
		if w.continues(p) {
			w.add(p)
			if joined, ok := w.joined(); ok && !w.open(p) {
				first := w.pieces[0]
				first.rest = joined
				w.pieces = w.pieces[:0]
				l.process(&first)
			}
			return true
		}
		l.endWrapped()
	}
	if !beginsMessage(p.rest) {
		return false
	}
	w.width, w.size = p.width, 0
	w.add(p)
	return true
}

func (w *wrapped) add(p *piece) {
	held := *p
	held.rest = bytes.Clone(p.rest)
	w.pieces = append(w.pieces, held)
	w.size += len(held.rest)
}

// continues reports whether a line may be the next piece.
func (w *wrapped) continues(p *piece) bool {
	if len(w.pieces) >= maxPieces || w.size+len(p.rest) > maxWrapped || p.width > w.width+longWord || p.at.file != w.pieces[0].at.file {
		return false
	}
	return (p.tag.text == "" || p.tag.text == w.pieces[0].tag.text) && len(bytes.TrimSpace(p.rest)) > 0 &&
		!bytes.Contains(p.rest, []byte("[rank")) && !begins.Match(p.rest) && !parse(p.rest).noted
}

// joined returns the text of all pieces; ok is false where it has no whole message.
func (w *wrapped) joined() (text []byte, ok bool) {
	var all [][]byte
	for i := range w.pieces {
		all = append(all, w.pieces[i].rest)
	}
	var trimmed [][]byte
	for _, piece := range all {
		trimmed = append(trimmed, bytes.TrimSpace(piece))
	}
	// At a column, between words, and at a column with the spaces there left out.
	for _, text = range [][]byte{bytes.Join(all, nil), bytes.Join(trimmed, []byte(" ")), unwrapped(bytes.Join(all, nil))} {
		if whole(text) {
			return text, true
		}
	}
	return text, false
}

// open reports whether the last piece is as wide as the first, so that a number at its end may go on.
func (w *wrapped) open(p *piece) bool {
	if p.width < w.width || len(w.pieces) >= maxPieces {
		return false
	}
	end := p.rest[len(p.rest)-1]
	return end >= '0' && end <= '9' || bytes.Contains(w.pieces[0].rest, markMismatch) || w.endsWatchdog()
}

// endsWatchdog reports whether the pieces have the error that ended a watchdog, whose text has no end of its own.
func (w *wrapped) endsWatchdog() bool {
	text, _ := w.joined()
	return bytes.Contains(text, []byte(watchdogEnd))
}

// continuesEnd reports whether a line is the rest of an error, or of another line of an end, in front of it, which a
// terminal wrapped: no line is wider, and others are as wide.
func (l *reader) continuesEnd(at place) bool {
	const least = 60 // characters of a terminal
	return l.ended > 0 && at.line == l.ended+1 && l.endWidth == l.widest && l.asWide > 1 && l.widest >= least
}

// noteEnd notes a line of an end.
func (l *reader) noteEnd(at place) { l.ended, l.endWidth = at.line, l.width }

// endWrapped processes the pieces that are held: as one line where they have a whole message, else each.
func (l *reader) endWrapped() {
	w := &l.wrapped
	if len(w.pieces) == 0 {
		return
	}
	pieces := w.pieces
	joined, ok := w.joined()
	w.pieces = nil
	if ok && len(pieces) > 1 {
		pieces[0].rest = joined
		pieces = pieces[:1]
	}
	for i := range pieces {
		l.process(&pieces[i])
	}
}
