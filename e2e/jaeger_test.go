// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jaeger is a real one that keeps everything in memory.
type jaeger struct {
	*process
	otlp  string // OTLP over gRPC
	query string // base URL of the query API
}

func startJaeger(t *testing.T) *jaeger {
	t.Helper()
	program := built(t, "jaeger")
	config, err := filepath.Abs("testdata/jaeger.yaml")
	require.NoError(t, err)
	ports := freePorts(t, 3)
	j := &jaeger{otlp: ports[0], query: "http://" + ports[1]}
	j.process = start(t, map[string]string{
		"JAEGER_OTLP_GRPC":  ports[0],
		"JAEGER_QUERY_HTTP": ports[1],
		"JAEGER_QUERY_GRPC": ports[2],
	}, program, "--config", config)
	eventually(t, readyLimit, func() error {
		_, err := get(j.query + "/api/services")
		return err
	}, j.process)
	return j
}

// jaegerTrace is what the tests read of an answer of /api/traces.
type jaegerTrace struct {
	TraceID   string       `json:"traceID"`
	Spans     []jaegerSpan `json:"spans"`
	Processes map[string]struct {
		Tags []jaegerTag `json:"tags"`
	} `json:"processes"`
}

type jaegerTag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// ranks returns the ranks that the trace has resources of.
func (t *jaegerTrace) ranks() map[any]bool {
	ranks := map[any]bool{}
	for _, process := range t.Processes {
		for _, tag := range process.Tags {
			if tag.Key == "lockstep.rank" {
				ranks[tag.Value] = true
			}
		}
	}
	return ranks
}

// linksWithin counts the links whose target is in the trace too.
func (t *jaegerTrace) linksWithin() int {
	ids := map[string]bool{}
	for _, span := range t.Spans {
		ids[span.SpanID] = true
	}
	n := 0
	for _, span := range t.Spans {
		for _, id := range span.links(t.TraceID) {
			if ids[id] && id != span.SpanID {
				n++
			}
		}
	}
	return n
}

type jaegerSpan struct {
	SpanID     string      `json:"spanID"`
	Name       string      `json:"operationName"`
	Start      int64       `json:"startTime"` // Unix µs
	Duration   int64       `json:"duration"`  // µs
	Tags       []jaegerTag `json:"tags"`
	References []struct {
		Type    string `json:"refType"`
		TraceID string `json:"traceID"`
		SpanID  string `json:"spanID"`
	} `json:"references"`
}

// links returns the ids of the spans of its own trace that the span is linked
// to. The query API renders a span link as a reference FOLLOWS_FROM.
func (s *jaegerSpan) links(traceID string) []string {
	var ids []string
	for _, ref := range s.References {
		if ref.Type == "FOLLOWS_FROM" && ref.TraceID == traceID {
			ids = append(ids, ref.SpanID)
		}
	}
	return ids
}

// tag returns the value of an attribute; nil where there is none.
func (s *jaegerSpan) tag(key string) any {
	for _, tag := range s.Tags {
		if tag.Key == key {
			return tag.Value
		}
	}
	return nil
}

// trace returns the spans of one trace by their names.
func (j *jaeger) trace(id string) (map[string]jaegerSpan, error) {
	var answer struct {
		Data []jaegerTrace `json:"data"`
	}
	if err := getJSON(j.query+"/api/traces/"+id, &answer); err != nil {
		return nil, err
	}
	spans := map[string]jaegerSpan{}
	for _, trace := range answer.Data {
		for _, span := range trace.Spans {
			spans[span.Name] = span
		}
	}
	return spans, nil
}

// services lists the names that Jaeger has spans of.
func (j *jaeger) services() ([]string, error) {
	var answer struct {
		Data []string `json:"data"`
	}
	if err := getJSON(j.query+"/api/services", &answer); err != nil {
		return nil, err
	}
	return answer.Data, nil
}

// traces finds the traces of one service, whenever recorded.
func (j *jaeger) traces(service string) ([]jaegerTrace, error) {
	query := url.Values{
		"service": {service},
		"start":   {"1000000"},
		"end":     {strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)},
		"limit":   {"1000"},
	}
	var answer struct {
		Data   []jaegerTrace     `json:"data"`
		Errors []json.RawMessage `json:"errors"`
	}
	if err := getJSON(j.query+"/api/traces?"+query.Encode(), &answer); err != nil {
		return nil, err
	}
	if len(answer.Errors) > 0 {
		return nil, fmt.Errorf("query traces: %s", answer.Errors[0])
	}
	return answer.Data, nil
}

// allTraces finds the traces of every service.
func (j *jaeger) allTraces() ([]jaegerTrace, error) {
	services, err := j.services()
	if err != nil {
		return nil, err
	}
	var all []jaegerTrace
	for _, service := range services {
		traces, err := j.traces(service)
		if err != nil {
			return nil, err
		}
		all = append(all, traces...)
	}
	return all, nil
}
