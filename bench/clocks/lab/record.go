// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	stderrors "errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
)

// maxRecording bounds the lines of a recording together, in bytes before compression. A
// scenario that has more of them fails when it ends.
const maxRecording = 1 << 30

// entry is one line of a recording, a file of compressed JSON lines that holds all that a
// mesh was judged by: the scenario first, then what happened in its order.
type entry struct {
	Scenario *recorded    `json:",omitempty"`
	Report   *plan.Report `json:",omitempty"`
	Solve    bool         `json:",omitempty"`
	Count    bool         `json:",omitempty"` // what is reported and solved is judged
}

// recorded is what has to be known of a scenario to judge it once more.
type recorded struct {
	Name     string
	Rate     float64
	K        int
	Changing bool
	Nodes    []*plan.Node
}

// recording is written while a mesh runs; a nil one writes nothing.
type recording struct {
	file  *os.File
	zip   *gzip.Writer
	lines *json.Encoder
	room  int64
	err   error // the first that came in the way
}

var errRecordingFull = stderrors.New("the recording is full")

// record begins the recording of a scenario in the folder, if there is one.
func (l *lab) record(s *scenario, nodes []*plan.Node) (*recording, error) {
	if l.folder == "" {
		return nil, nil //nolint:nilnil // nil records nothing
	}
	if err := os.MkdirAll(l.folder, 0o755); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	name := strings.NewReplacer(" ", "_", "/", "_per_", ",", "").Replace(strings.Join(strings.Fields(s.name), " ")) + ".jsonl.gz"
	file, err := os.Create(filepath.Join(l.folder, name))
	if err != nil {
		return nil, fmt.Errorf("create recording: %w", err)
	}
	zip, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("create recording: %w", err)
	}
	r := &recording{file: file, zip: zip, room: maxRecording}
	r.lines = json.NewEncoder(r)
	r.write(entry{Scenario: &recorded{s.name, s.rate, s.k, s.event != nil, nodes}})
	return r, nil
}

// Write counts what is written.
func (r *recording) Write(p []byte) (int, error) {
	if r.room -= int64(len(p)); r.room < 0 {
		return 0, errRecordingFull
	}
	return r.zip.Write(p)
}

func (r *recording) write(e entry) {
	if r != nil && r.err == nil {
		r.err = r.lines.Encode(e)
	}
}

// close ends the recording; the error is that of any part of it.
func (r *recording) close() error {
	if r == nil {
		return nil
	}
	if err := stderrors.Join(r.err, r.zip.Close(), r.file.Close()); err != nil {
		return fmt.Errorf("record mesh: %w", err)
	}
	return nil
}

// readRecording calls each with all entries of a file.
func readRecording(name string, each func(*entry) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	for lines := json.NewDecoder(zip); ; {
		var e entry
		switch err := lines.Decode(&e); {
		case stderrors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read recording: %w", err)
		}
		if err := each(&e); err != nil {
			return err
		}
	}
}
