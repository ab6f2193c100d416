// SPDX-License-Identifier: Apache-2.0

package sniff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

// Accepted lists what lockstep analyze reads, for refusals.
const Accepted = "PyTorch traces (traceEvents), OTLP JSON of spans (resourceSpans), Parquet files of the parquet exporter, Flight Recorder dumps, answers of NCCL's RAS (the output of ncclras), " +
	"or logs of ranks with lines of PyTorch's watchdog (\"Watchdog caught collective operation timeout\")"

// ErrNoAnswer is of files that hold a message of ncclras instead of an answer, or a part of one.
var ErrNoAnswer = errors.New("no answer of NCCL's RAS")

// rasFailed are the lines in which ncclras says that it got no answer; of other connections than to
// the port of RAS nothing is said.
var rasFailed = regexp.MustCompile(`(?mi)^\s*((?:.*connect\w* to \S+:28028: .*|failed to connect to the NCCL RAS service.*|NCCL unexpectedly closed the connection.*)?)\s*$`)

// rasPart are lines of an answer in text behind its first.
var rasPart = regexp.MustCompile(`(?m)^(?:(#\d+-\d+ \([0-9a-f]{1,16}\) (?:INCOMPLETE|ERROR|MISMATCH))|(Job summary)|\s+(Communicator ranks have different \w+(?: operation counts)?))\s*$`)

// maxMessage bounds a file that is taken for a message of ncclras, in bytes: a log that has such a
// line has others, too.
const maxMessage = 4 << 10

// noAnswer says that content is a message of ncclras or a part of an answer; nil where it is neither.
func noAnswer(head []byte) error {
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	if len(head) <= maxMessage {
		for _, m := range rasFailed.FindAllSubmatch(head, -1) {
			if len(m[1]) > 0 {
				return fmt.Errorf("got %w, but a message that none came (%q); want the output of ncclras -v: ask on a node where the job runs, while the job runs, at the address that its NCCL_RAS_ADDR names (localhost:28028 without one)",
					ErrNoAnswer, excerpt(m[1]))
			}
		}
	}
	if m := rasPart.FindSubmatch(head); m != nil {
		line := bytes.Join(m[1:], nil)
		return fmt.Errorf("got %w, but a part of one (%q); want its whole text, from \"NCCL version\" on: save the output of ncclras -v once more", ErrNoAnswer, excerpt(line))
	}
	return nil
}

// maxExcerpt bounds what a refusal quotes, in bytes.
const maxExcerpt = 60

func excerpt(line []byte) []byte {
	if len(line) <= maxExcerpt {
		return line
	}
	return append(bytes.Clone(whole(line)), "..."...)
}

// whole returns the beginning of text up to the end of a character; empty where it is no text.
func whole(text []byte) []byte {
	text = text[:min(len(text), maxExcerpt)]
	for cut := range min(len(text), utf8.UTFMax) {
		if part := text[:len(text)-cut]; utf8.Valid(part) {
			return part
		}
	}
	return nil
}

// strange says what content is that is no JSON.
func strange(head []byte) error {
	const shown = 3
	text := bytes.TrimSpace(head)
	switch {
	case len(head) == 0:
		return fmt.Errorf("got an empty file; want %s", Accepted)
	case len(text) == 0:
		return fmt.Errorf("got a file of blanks; want %s", Accepted)
	case bytes.IndexByte(head, 0) >= 0, len(whole(text)) == 0:
		return fmt.Errorf("got content that begins with the bytes % x; want %s", head[:min(len(head), shown)], Accepted)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return fmt.Errorf("got text that begins with %q; want %s", excerpt(bytes.TrimSpace(line)), Accepted)
}

// damaged names the place of a fault; the end of input within a value is one.
func damaged(d *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("got JSON that is cut off at byte %d; want a whole file: copy or save it once more", d.InputOffset())
	case errors.As(err, &syntax):
		return fmt.Errorf("got JSON that is damaged at byte %d; want a whole file: copy or save it once more", syntax.Offset)
	}
	return fmt.Errorf("read JSON at byte %d: %w", d.InputOffset(), err)
}
