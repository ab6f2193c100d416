// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// shopAhead is by how much the clock of the calling host is ahead: a call takes
	// less, so that what is stamped on the other host seems to be before it.
	shopAhead = 7 * time.Millisecond
	// callEvery, in which a call takes 2 ms at least, on either way 100 µs or more.
	callEvery  = 40 * time.Millisecond
	onTheWay   = 100 * time.Microsecond
	workOnCall = 1800 * time.Microsecond
)

// Ordinary services on two hosts whose clocks differ, with nothing but their spans, in
// a real Jaeger: calls are around what they called, and what nobody waited for stays
// where its own clock puts it.
func TestServicesInJaeger(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	http := freePorts(t, 1)[0]
	c := startCollector(t, "services.yaml", map[string]string{
		"LOCKSTEP_OTLP_HTTP_ENDPOINT": http,
		"LOCKSTEP_JAEGER_ENDPOINT":    j.otlp,
	})
	url := "http://" + http + "/v1/traces"
	// The clocks are solved once a second: some seconds to learn them, some to look at.
	const rounds, looked = 16, 4
	var last []string
	for round := range rounds {
		traces := sendCalls(t, url, round)
		if round >= rounds-looked {
			last = append(last, traces...)
		}
		time.Sleep(500 * time.Millisecond)
	}
	for _, id := range []string{last[0], last[len(last)/2], last[len(last)-1]} {
		var call, server, later jaegerSpan
		eventually(t, readyLimit, func() error {
			spans, err := j.trace(id)
			if err != nil {
				return err
			}
			call, server, later = spans["call"], spans["serve"], spans["later"]
			if call.SpanID == "" || server.SpanID == "" || later.SpanID == "" {
				return fmt.Errorf("find trace %s: got %d of its spans; want call, serve and later", id, len(spans))
			}
			return nil
		}, j.process, c.process)
		// Jaeger shows whole µs.
		assert.Greater(t, server.Start, call.Start, "the server begins after the call")
		assert.Less(t, server.Start+server.Duration, call.Start+call.Duration, "and ends before it")
		assert.InDelta(t, onTheWay.Microseconds(), server.Start-call.Start, 300)
		assert.InDelta(t, server.Start+server.Duration+1000, later.Start, 2, "1 ms later on the same clock")
		assert.NotEmpty(t, call.tag("lockstep.clock.timeline"))
		assert.NotEmpty(t, server.tag("lockstep.clock.raw_start_unix_nano"))
		assert.NotEqual(t, "introduced", server.tag("lockstep.causality.verdict"))
	}
}

// sendCalls sends what two hosts stamped in half a second, each in a request of its
// own, and returns the traces.
func sendCalls(t *testing.T, url string, round int) (traces []string) {
	t.Helper()
	var shop, store []string
	begun := time.Now().Add(-time.Second)
	for n := range int(500 * time.Millisecond / callEvery) {
		trace := fmt.Sprintf("%016x%016x", begun.UnixNano(), round*1000+n+1)
		traces = append(traces, trace)
		at := begun.Add(time.Duration(n) * callEvery)
		// Every third message of a direction is the fastest one.
		there, back := onTheWay+time.Duration(n%3)*50*time.Microsecond, onTheWay+time.Duration((n+1)%3)*50*time.Microsecond
		arrived := at.Add(there)
		answered := arrived.Add(workOnCall)
		returned := answered.Add(back)
		shop = append(shop, span(trace, "a1", "", "call", 3, at.Add(shopAhead), returned.Add(shopAhead)))
		store = append(store, span(trace, "b1", "a1", "serve", 2, arrived, answered),
			span(trace, "b2", "b1", "later", 1, answered.Add(time.Millisecond), answered.Add(9*time.Millisecond)))
	}
	post(t, url, resource("shop", shop))
	post(t, url, resource("store", store))
	return traces
}

func span(trace, id, parent, name string, kind int, start, end time.Time) string {
	if parent != "" {
		parent = strings.Repeat("0", 14) + parent
	}
	return fmt.Sprintf(`{"traceId": %q, "spanId": "%016s", "parentSpanId": %q, "name": %q, "kind": %d,
	"startTimeUnixNano": "%d", "endTimeUnixNano": "%d",
	"attributes": [{"key": "rpc.system", "value": {"stringValue": "grpc"}}]}`,
		trace, id, parent, name, kind, start.UnixNano(), end.UnixNano())
}

func resource(host string, spans []string) string {
	return fmt.Sprintf(`{"resourceSpans": [{"resource": {"attributes": [
	{"key": "service.name", "value": {"stringValue": %[1]q}},
	{"key": "host.name", "value": {"stringValue": %[1]q}}]},
	"scopeSpans": [{"spans": [%[2]s]}]}]}`, host, strings.Join(spans, ","))
}

func post(t *testing.T, url, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
