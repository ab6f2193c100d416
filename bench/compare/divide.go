// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
)

// recordedLogs is a request of log records, as the collector's recorder writes it. What is not named here is
// not divided.
type recordedLogs struct {
	After json.RawMessage `json:"after_seconds"`
	Data  struct {
		Resources []struct {
			Resource json.RawMessage `json:"resource,omitempty"`
			Scopes   []struct {
				Scope   json.RawMessage   `json:"scope,omitempty"`
				Records []json.RawMessage `json:"logRecords"`
			} `json:"scopeLogs"`
		} `json:"resourceLogs"`
	} `json:"data"`
}

// divide returns a request for each log record of a request; a request of another signal stays whole.
func divide(line []byte) (single [][]byte, err error) {
	var all recordedLogs
	if err := json.Unmarshal(line, &all); err != nil {
		return nil, fmt.Errorf("read a request: %w", err)
	}
	for _, r := range all.Data.Resources {
		for _, s := range r.Scopes {
			for _, record := range s.Records {
				one := all
				one.Data.Resources = append(one.Data.Resources[:0:0], r)
				one.Data.Resources[0].Scopes = append(r.Scopes[:0:0], s)
				one.Data.Resources[0].Scopes[0].Records = []json.RawMessage{record}
				text, err := json.Marshal(&one)
				if err != nil {
					return nil, fmt.Errorf("write a record: %w", err)
				}
				single = append(single, text)
			}
		}
	}
	if len(single) == 0 {
		return [][]byte{line}, nil
	}
	return single, nil
}
