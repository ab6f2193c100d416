package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// format is what a file's content says that it is.
type format int

const (
	formatUnknown format = iota
	formatTorch          // Chrome JSON of the PyTorch profiler
	formatOTLP           // OTLP JSON with spans
)

// formatKeys are the top-level keys that tell a format. Others, as a PyTorch
// trace may have before them, are passed over.
var formatKeys = map[string]format{
	"resourceSpans":    formatOTLP,
	"resource_spans":   formatOTLP,
	"traceEvents":      formatTorch,
	"schemaVersion":    formatTorch,
	"deviceProperties": formatTorch,
	"distributedInfo":  formatTorch,
}

// sniffLimit bounds how much of a file is looked at.
const sniffLimit = 1 << 20

// openContent opens a file, uncompressed where it is gzip. The wrap sees the
// bytes as stored.
func openContent(path string, wrap func(io.Reader) io.Reader) (io.Reader, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open file: %w", err)
	}
	r := bufio.NewReaderSize(wrap(f), 64<<10)
	if magic, _ := r.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return r, f, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("open gzip: %w", err)
	}
	return z, f, nil
}

// sniff tells a file's format from its beginning. An error says that the
// content is damaged before its format could be told.
func sniff(path string) (format, error) {
	r, c, err := openContent(path, func(r io.Reader) io.Reader { return r })
	if err != nil {
		return formatUnknown, err
	}
	defer func() { _ = c.Close() }()
	head := &io.LimitedReader{R: r, N: sniffLimit}
	f, err := sniffJSON(head)
	if head.N <= 0 {
		err = nil // the end of what is looked at, not of the file
	}
	return f, err
}

func sniffJSON(r io.Reader) (format, error) {
	d := json.NewDecoder(skipBOM(r))
	token, err := d.Token()
	if err != nil {
		return formatUnknown, damaged(d, err)
	}
	if token != json.Delim('{') {
		return formatUnknown, nil
	}
	return sniffObject(d)
}

func sniffObject(d *json.Decoder) (format, error) {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return formatUnknown, damaged(d, err)
		}
		name, _ := key.(string)
		if f, ok := formatKeys[name]; ok {
			return f, nil
		}
		if err := skipValue(d); err != nil {
			return formatUnknown, damaged(d, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return formatUnknown, damaged(d, err)
	}
	return formatUnknown, nil
}

// damaged names the place of a fault; the end of input within a value is one.
func damaged(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read JSON at byte %d: %w", d.InputOffset(), err)
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

// skipBOM leaves out the byte order mark that some editors write.
func skipBOM(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = b.Discard(3)
	}
	return b
}
