// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// ErrNoTrace says that a file is JSON, but no trace.
var ErrNoTrace = errors.New("not a PyTorch trace: no traceEvents")

// ErrTooLarge says that a file holds more than Options.MaxBytes.
var ErrTooLarge = errors.New("trace is too large")

// parser is the state of one pass over a file.
type parser struct {
	o       Options
	src     *source
	t       *Trace
	faults  *faults
	names   *names
	texts   *table          // process groups, grids
	ranks   *table          // lists of ranks
	metas   map[meta]uint32 // numbers in t.metas
	args    rawArgs
	event   rawEvent
	outer   outermost
	gpu     bool // a kernel was seen
	hasList bool // traceEvents was seen
	packed  bool // by gzip
}

// maxRanksBytes bounds the text of one list of ranks: 131,072 ranks of eight
// characters.
const maxRanksBytes = 1 << 20

// maxRankLists bounds the distinct lists: a rank is in a few tens of groups.
const maxRankLists = 64

// Parse reads a trace. name stands for it in problems and serves to find the
// rank. Where reading fails half way, it returns what was read before, and a
// [ParseError].
func Parse(ctx context.Context, r io.Reader, name string, o Options) (*Trace, error) {
	o = o.withDefaults()
	f := &faults{}
	p := &parser{o: o, faults: f, t: newTrace(name, o), names: newNames(o, &f.names), metas: map[meta]uint32{}}
	p.texts = newTable(o.MaxStrings, kernelname.MaxBytes, &f.names)
	p.ranks = newTable(maxRankLists, maxRanksBytes, &f.names)
	count := &counter{r: r, tell: o.Progress}
	plain, packed, err := uncompressed(count)
	if err != nil {
		return nil, &ParseError{File: name, Err: fmt.Errorf("read gzip header: %w", err)}
	}
	p.src = newSource(ctx, &bounded{plain, o.MaxBytes}, o.MaxEventBytes)
	p.packed = packed
	err = p.file()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("unexpected end of file")
	}
	if errors.Is(err, errFull) {
		err = fmt.Errorf("got a value longer than %d bytes; want at most that", o.MaxEventBytes)
	}
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%w: got more bytes, unpacked; want at most %d", err, o.MaxBytes)
	}
	at := p.src.offset()
	if se := (*syntaxError)(nil); errors.As(err, &se) {
		at += int64(se.at)
	}
	p.t.stats.Truncated = err != nil
	p.t.stats.Bytes = p.src.base + int64(p.src.end)
	p.finish()
	if err == nil && !p.hasList {
		err = ErrNoTrace
	}
	if err != nil {
		return p.t, &ParseError{File: name, Offset: at, Err: err}
	}
	return p.t, nil
}

// ParseFile reads the trace in a file.
func ParseFile(ctx context.Context, path string, o Options) (*Trace, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	return Parse(ctx, f, path, o)
}

// file reads the object that is the whole trace.
func (p *parser) file() error {
	c, err := p.src.peek()
	if err != nil {
		return err
	}
	if c == '[' {
		return ErrNoTrace
	}
	if c != '{' {
		return p.noTrace(c)
	}
	p.src.pos++
	for first := true; ; first = false {
		more, err := p.separator('}', first)
		if err != nil {
			return err
		}
		if !more {
			return p.end()
		}
		if err := p.topLevel(); err != nil {
			return err
		}
	}
}

// noTrace says what a file is not that begins with c.
func (p *parser) noTrace(c byte) error {
	switch {
	case c == '"' || c == '-' || (c >= '0' && c <= '9'):
		return unexpected(0, c, "'{' of a trace")
	case p.packed:
		return &syntaxError{0, "no JSON inside of gzip: begins with " + quoteByte(c)}
	}
	return &syntaxError{0, "neither JSON nor gzip: begins with " + quoteByte(c)}
}

// end reads to the end of the file, where gzip's checksum stands.
func (p *parser) end() error {
	c, err := p.src.peek()
	switch {
	case err == nil:
		return unexpected(0, c, "the end of the file")
	case p.src.eof:
		return nil
	}
	return err
}

// separator takes the comma before a further element, or the closing bracket.
func (p *parser) separator(closing byte, first bool) (more bool, err error) {
	c, err := p.src.peek()
	switch {
	case err != nil:
		return false, err
	case c == closing:
		p.src.pos++
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, unexpected(0, c, "',' or '"+string(rune(closing))+"'")
	}
	p.src.pos++
	_, err = p.src.peek()
	return true, err
}

// topLevel reads one member of the file's object.
func (p *parser) topLevel() error {
	key, err := p.key()
	if err != nil {
		return err
	}
	switch key {
	case "traceEvents":
		return p.list()
	case "baseTimeNanoseconds", "distributedInfo", "host_name":
		var val []byte
		err := p.src.value(func(b []byte) (int, error) {
			n, err := skipValue(b, 0)
			val = b[:max(n, 0)]
			return n, err
		})
		if errors.Is(err, errFull) || errors.Is(err, errDeep) {
			p.t.problem(p.src.offset(), fmt.Sprintf("skip %s: longer than %d bytes, or nested too deeply", key, p.o.MaxEventBytes))
			return p.src.skip()
		}
		if err == nil {
			p.t.header(key, val, p.src.offset())
		}
		return err
	}
	return p.src.skip()
}

// key reads a member's key and colon.
func (p *parser) key() (string, error) {
	c, err := p.src.peek()
	if err != nil {
		return "", err
	}
	if c != '"' {
		return "", unexpected(0, c, "a key")
	}
	var key string
	err = p.src.value(func(b []byte) (int, error) {
		n, err := skipString(b, 0)
		if err == nil && n <= kernelname.MaxBytes {
			key = string(b[1 : n-1])
		}
		return n, err
	})
	if errors.Is(err, errFull) {
		err = p.src.skip()
	}
	if err != nil {
		return "", err
	}
	if c, err = p.src.peek(); err != nil {
		return "", err
	}
	if c != ':' {
		return "", unexpected(0, c, "':'")
	}
	p.src.pos++
	_, err = p.src.peek()
	return key, err
}

// list reads traceEvents.
func (p *parser) list() error {
	c, err := p.src.peek()
	if err != nil {
		return err
	}
	if c != '[' {
		return unexpected(0, c, "'[' of traceEvents")
	}
	p.hasList = true
	p.src.pos++
	for first := true; ; first = false {
		more, err := p.separator(']', first)
		if err != nil || !more {
			return err
		}
		if err := p.element(); err != nil {
			return err
		}
	}
}

// element reads one element of traceEvents.
func (p *parser) element() error {
	at := p.src.offset()
	p.t.stats.Events++
	if p.src.window()[0] != '{' {
		p.faults.notEvents.hit(at)
		return p.src.skip()
	}
	err := p.src.value(func(b []byte) (int, error) { return scanEvent(b, &p.event) })
	switch {
	case err == nil:
		p.keep(at)
		return nil
	case errors.Is(err, errFull):
		p.faults.tooLong.hit(at)
	case errors.Is(err, errDeep):
		p.faults.tooDeep.hit(at)
	default:
		return err
	}
	return p.src.skip()
}

// JobID returns the id of a file's job: as configured, else the environment's,
// else the name of the file's folder.
func JobID(o Options, file string) string {
	if o.JobID != "" {
		return o.JobID
	}
	if id := os.Getenv(EnvJobID); id != "" {
		return id
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return filepath.Base(filepath.Dir(file))
	}
	return filepath.Base(dir)
}

func (t *Trace) problem(at int64, what string) {
	t.problems = append(t.problems, model.Problem{File: t.file, Offset: at, What: what})
}
