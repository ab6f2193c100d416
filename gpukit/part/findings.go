// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// maxLine bounds a line of the collector's file, bytes.
const maxLine = 8 << 20

// readFindings reads the findings of a file that json_lines wrote, in order. A file
// that is not there holds none: the exporter makes it with the first line.
func readFindings(path string) ([]model.Finding, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	defer f.Close()
	return decodeFindings(f)
}

func decodeFindings(r io.Reader) ([]model.Finding, error) {
	var found []model.Finding
	var decoder plog.JSONUnmarshaler
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		logs, err := decoder.UnmarshalLogs(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("read findings: line %d: %w", number, err)
		}
		found = appendFindings(found, logs)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	return found, nil
}

func appendFindings(found []model.Finding, logs plog.Logs) []model.Finding {
	var problems otelmap.Problems
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() != semconv.EventFinding {
					continue
				}
				if f, ok := otelmap.LogToFinding(record, &problems); ok {
					found = append(found, f)
				}
			}
		}
	}
	return found
}
