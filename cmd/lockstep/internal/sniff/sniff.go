// SPDX-License-Identifier: Apache-2.0

// Package sniff tells the format of an input file by its content.
package sniff

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/lockstep-otel/lockstep/internal/ranklog"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// Format is what a file's content says that it is.
type Format int

// The formats.
const (
	Unknown        Format = iota
	Torch                 // Chrome JSON of the PyTorch profiler
	OTLP                  // OTLP JSON with spans
	FlightRecorder        // a Flight Recorder dump: a pickle, or its JSON twin
	RankLog               // a log with lines of PyTorch's watchdog, or torchrun's error summary
	RAS                   // an answer of NCCL's RAS: the output of ncclras, in text or JSON
	Parquet               // a Parquet file, whatever its columns are
)

// formatKeys are the top-level keys that tell a format. Others, as a PyTorch
// trace may have before them, are passed over.
var formatKeys = map[string]Format{
	"resourceSpans":    OTLP,
	"resource_spans":   OTLP,
	"traceEvents":      Torch,
	"schemaVersion":    Torch,
	"deviceProperties": Torch,
	"distributedInfo":  Torch,
	"pg_config":        FlightRecorder,
	"pg_status":        FlightRecorder,
	"nccl_comm_state":  FlightRecorder,
	"nccl_version":     FlightRecorder,
	"comm_lib_version": FlightRecorder,
}

// entryKeys are in the first entry of every dump that has one, and the groups in the
// beginning of every pickle of a dump.
var entryKeys = [][]byte{[]byte("profiling_name"), []byte("record_id"), []byte("pg_config")}

// dumpHead is how much of a dump is searched for them: a call stack of some 60 frames may
// stand in front.
const dumpHead = 16 << 10

// isDump reports whether content begins as a dump does. JSON of dumps has its keys sorted,
// so that all entries may stand in front of the others.
func isDump(head []byte) bool {
	const pickleProto = 0x80
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(text) == 0:
		return false
	case head[0] == pickleProto && len(head) > 1 && head[1] >= 2 && head[1] <= 5:
	case text[0] == '[', text[0] == '{' && bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`"entries"`)):
	default:
		return false
	}
	for _, k := range entryKeys {
		if bytes.Contains(head, k) {
			return true
		}
	}
	return false
}

// sniffLimit bounds how much of a file is looked at.
const sniffLimit = 1 << 20

// parquetMagic is what each Parquet file begins with (apache/parquet-format).
const parquetMagic = "PAR1"

// maxWindow bounds the memory of a decoder of zstd: 128 MiB, as its command line tool.
const maxWindow = 128 << 20

// closers closes one after the other.
type closers []io.Closer

// Close closes all, and returns the first error.
func (c closers) Close() (err error) {
	for _, each := range c {
		if e := each.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Open opens a file, uncompressed where it is gzip or zstd. The wrap sees the
// bytes as stored.
func Open(path string, wrap func(io.Reader) io.Reader) (io.Reader, io.Closer, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open file: %w", err)
	}
	r := bufio.NewReaderSize(wrap(f), 64<<10)
	magic, _ := r.Peek(4)
	if bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			_ = f.Close()
			return nil, nil, fmt.Errorf("open zstd: %w", err)
		}
		in := z.IOReadCloser()
		return in, closers{in, f}, nil
	}
	if !bytes.HasPrefix(magic, []byte{0x1f, 0x8b}) {
		return r, f, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("open gzip: %w", err)
	}
	return z, f, nil
}

// File tells a file's format from its beginning. An error says that the
// content is damaged before its format could be told.
func File(path string) (Format, error) {
	r, c, err := Open(path, func(r io.Reader) io.Reader { return r })
	if err != nil {
		return Unknown, err
	}
	defer func() { _ = c.Close() }()
	b := bufio.NewReaderSize(r, dumpHead)
	start, _ := b.Peek(dumpHead)
	if isDump(start) {
		return FlightRecorder, nil
	}
	if bytes.HasPrefix(start, []byte(parquetMagic)) {
		return Parquet, nil
	}
	holdsDumps := gathered(start) && !ranklog.IsDocker(start) // before it is read on
	if isRAS(start) {
		return RAS, nil
	}
	if kind := archive(start); kind != "" {
		return Unknown, fmt.Errorf("got a %s archive; unpack it, and name the folder", kind)
	}
	head := &io.LimitedReader{R: b, N: sniffLimit}
	f, err := sniffJSON(head)
	if head.N <= 0 {
		err = nil // the end of what is looked at, not of the file
	}
	switch {
	case f != Unknown:
	case holdsDumps:
		return FlightRecorder, nil
	case isLog(path):
		return RankLog, nil
	case errors.Is(err, errNoJSON):
		if err = noAnswer(start); err == nil {
			err = strange(start)
		}
	}
	return f, err
}

// archive names the format of an archive; empty where content begins as none.
func archive(head []byte) string {
	const tarMagicAt = 257
	switch {
	case len(head) > tarMagicAt && bytes.HasPrefix(head[tarMagicAt:], []byte("ustar")):
		return "tar"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return "zip"
	}
	return ""
}

// gathered reports whether JSON begins as gathered dumps do: they are somewhere in
// it, perhaps within strings, as text or as a pickle in base64.
func gathered(head []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) == 0 || bytes.IndexByte([]byte(`{["`), text[0]) < 0 {
		return false
	}
	for _, k := range entryKeys {
		for rest := text; ; {
			i := bytes.Index(rest, k)
			if i < 0 {
				break
			}
			if i > 0 && rest[i-1] == '"' { // a key, also within a string
				return true
			}
			rest = rest[i+len(k):]
		}
	}
	// The first two bytes of a pickle, of protocols 2 to 5.
	i := bytes.Index(text, []byte(`"gA`))
	return i >= 0 && i+3 < len(text) && text[i+3] >= 'I' && text[i+3] <= 'X'
}

// textHead is how much of a file is looked at to tell text from other content.
const textHead = 4 << 10

// IsText reports whether a file can be a log: empty, or text that is no JSON object but Docker's. NUL bytes
// in front and between are left out.
func IsText(path string) bool {
	r, c, err := Open(path, func(r io.Reader) io.Reader { return r })
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	b := bufio.NewReaderSize(r, textHead)
	head, nuls := behindNULs(b)
	if len(head) == 0 {
		return nuls == 0
	}
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		head, _ = io.ReadAll(io.LimitReader(ranklog.Decode(b), textHead)) // what can be read decides
	}
	start := bytes.TrimLeft(head, " \t\r\n")
	return !binary(head) && !bytes.HasPrefix(head, []byte{0x80}) && (!bytes.HasPrefix(start, []byte("{")) || ranklog.IsDocker(start) || ranklog.IsCollected(start))
}

// binary reports whether content with NUL bytes has other bytes that no text has: a log that was rotated or
// cut by a crash has runs of NUL bytes within.
func binary(head []byte) bool {
	if bytes.IndexByte(head, 0) < 0 {
		return false
	}
	head = bytes.TrimRightFunc(head, func(c rune) bool { return c == utf8.RuneError }) // a character that is cut
	return bytes.ContainsFunc(head, func(c rune) bool {
		return c == utf8.RuneError || c < ' ' && c != 0 && !strings.ContainsRune("\t\n\r\b\f\x1b\a", c)
	})
}

// behindNULs returns what follows the NUL bytes that a file begins with, and how many these are.
func behindNULs(b *bufio.Reader) (head []byte, nuls int64) {
	for {
		head, _ = b.Peek(textHead)
		n := len(head) - len(bytes.TrimLeft(head, "\x00"))
		if n == 0 {
			return head, nuls
		}
		_, _ = b.Discard(n) // they are there
		nuls += int64(n)
	}
}

// IsBlank reports whether a file has NUL bytes alone.
func IsBlank(path string) bool {
	r, c, err := Open(path, func(r io.Reader) io.Reader { return r })
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	head, nuls := behindNULs(bufio.NewReaderSize(r, textHead))
	return len(head) == 0 && nuls > 0
}

// isLog reports whether a file is a log of a rank with lines that tell of a hang.
func isLog(path string) bool {
	if !IsText(path) {
		return false
	}
	r, c, err := Open(path, func(r io.Reader) io.Reader { return r })
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	return ranklog.Sniff(r)
}

// errNoJSON is of content that does not begin as JSON.
var errNoJSON = errors.New("no JSON")

func sniffJSON(r io.Reader) (Format, error) {
	d := json.NewDecoder(SkipBOM(r))
	token, err := d.Token()
	var syntax *json.SyntaxError
	if errors.Is(err, io.EOF) || errors.As(err, &syntax) {
		return Unknown, errNoJSON
	}
	if err != nil {
		return Unknown, damaged(d, err)
	}
	if token != json.Delim('{') {
		return Unknown, nil
	}
	return sniffObject(d)
}

func sniffObject(d *json.Decoder) (Format, error) {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return Unknown, damaged(d, err)
		}
		name, _ := key.(string)
		if f, ok := formatKeys[name]; ok {
			return f, nil
		}
		if err := skipValue(d); err != nil {
			return Unknown, damaged(d, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return Unknown, damaged(d, err)
	}
	return Unknown, nil
}

func skipValue(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// SkipBOM leaves out the byte order mark that some editors write.
func SkipBOM(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = b.Discard(3)
	}
	return b
}
