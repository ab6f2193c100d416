// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// truth is what the script that made a recording says about it.
type truth struct {
	Rank  *int64 `json:"slow_rank"`
	Class string `json:"class"`
	Place string `json:"place"`
}

// truthSuffix follows a recording's folder in the name of the file beside it.
const truthSuffix = ".expected.json"

func expected(t *testing.T, traces string) truth {
	t.Helper()
	content, err := os.ReadFile(traces + truthSuffix)
	require.NoError(t, err)
	var want truth
	require.NoError(t, json.Unmarshal(content, &want))
	return want
}

// logLine is what the tests read of a line of the file exporter: OTLP as JSON.
type logLine struct {
	ResourceLogs []struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		ScopeLogs []struct {
			LogRecords []logRecord `json:"logRecords"`
		} `json:"scopeLogs"`
	} `json:"resourceLogs"`
}

type logRecord struct {
	TimeUnixNano int64      `json:"timeUnixNano,string"`
	EventName    string     `json:"eventName"`
	Attributes   []keyValue `json:"attributes"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value struct {
		String string `json:"stringValue"`
		Int    string `json:"intValue"`
		Bool   bool   `json:"boolValue"`
		// Double is as it was written, so that nothing is rounded.
		Double json.Number `json:"doubleValue"`
	} `json:"value"`
}

// finding is one finding event; integers are decimal, as OTLP's JSON has them.
type finding map[string]string

// findingsIn reads the finding events of a file of JSON lines.
func findingsIn(file string) ([]finding, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found []finding
	for line := range strings.Lines(string(content)) {
		var logs logLine
		if err := json.Unmarshal([]byte(line), &logs); err != nil {
			return nil, fmt.Errorf("decode a line of %s: %w", file, err)
		}
		found = append(found, logs.findings()...)
	}
	return found, nil
}

func (l *logLine) findings() []finding {
	var found []finding
	for _, resource := range l.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				if record.EventName != "lockstep.finding" {
					continue
				}
				f := finding{}
				for _, attribute := range record.Attributes {
					f[attribute.Key] = attribute.Value.String + attribute.Value.Int + attribute.Value.Double.String()
				}
				found = append(found, f)
			}
		}
	}
	return found
}
