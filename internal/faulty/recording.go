// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Line is one moment of a recording. Traces and Logs are OTLP as JSON; empty: there are none.
type Line struct {
	Moment int64           `json:"moment"`
	Traces json.RawMessage `json:"traces,omitempty"`
	Logs   json.RawMessage `json:"logs,omitempty"`
}

// Line returns the moment as OTLP.
func (m *Moment) Line() (line Line, err error) {
	line.Moment = m.n
	if m.Traces.SpanCount() > 0 {
		if line.Traces, err = (&ptrace.JSONMarshaler{}).MarshalTraces(m.Traces); err != nil {
			return line, fmt.Errorf("write traces: %w", err)
		}
	}
	if m.Logs.LogRecordCount() > 0 {
		if line.Logs, err = (&plog.JSONMarshaler{}).MarshalLogs(m.Logs); err != nil {
			return line, fmt.Errorf("write logs: %w", err)
		}
	}
	return line, nil
}

// Record writes so many moments of all faults, each in a job of the fault's name. The faults are removed from the moment
// removed on.
func Record(w io.Writer, faults []Fault, begin time.Time, moments, removed int64) error {
	out := json.NewEncoder(w)
	for n := range moments {
		for i := range faults {
			m := faults[i].Write(faults[i].Name, begin, n, removed)
			line, err := m.Line()
			if err != nil {
				return err
			}
			if err := out.Encode(line); err != nil {
				return fmt.Errorf("write recording: %w", err)
			}
		}
	}
	return nil
}

// maxLine bounds a line of a recording, bytes.
const maxLine = 16 << 20

// Read returns the lines of a recording.
func Read(r io.Reader) (lines []Line, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		var line Line
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read line %d of recording: %w", len(lines)+1, err)
		}
		lines = append(lines, line)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	return lines, nil
}
