// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nestingConfig receives OTLP with the limits of size that a person may set.
const nestingConfig = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %s, max_recv_msg_size_mib: %d}
      http: {endpoint: %s, max_request_body_size: %d}
exporters:
  debug:
extensions:
  health_check: {endpoint: %s}
service:
  extensions: [health_check]
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
    logs: {receivers: [otlp], exporters: [debug]}
  telemetry:
    metrics: {level: none}
`

// A protobuf attribute that is nested as deeply as the request's size allows is refused,
// in every signal, over HTTP and gRPC. The collector stays small and receives the next request.
func TestNestedAttributes_DeepAsFits_Refused(t *testing.T) {
	const memoryLimit = 300 << 20
	for _, size := range []int{4 << 20, 16 << 20} {
		t.Run(fmt.Sprintf("%d MiB", size>>20), func(t *testing.T) {
			c := startReceiver(t, size)
			for _, signal := range []string{"traces", "metrics", "logs"} {
				// 64 bytes of room: gRPC limits the message, HTTP the body.
				deep, levels := nestedRequest(signal, size-64)
				require.Greater(t, levels, size/11, "levels of %d bytes", size)
				t.Logf("%s: %d levels in %d bytes", signal, levels, len(deep))

				c.refuses(t, signal, deep)
				c.refusesGRPC(t, signal, deep)
				c.accepts(t, signal)
			}
			peak := peakMemory(t, c.cmd.Process.Pid)
			t.Logf("peak memory %d MiB", peak>>20)
			assert.Less(t, peak, memoryLimit)
			assert.Zero(t, c.terminate(t, stopLimit))
		})
	}
}

// pdata limits the depth of protobuf, not of JSON: such a request is accepted. The
// collector outlives it, also where an exporter walks through all of it.
func TestNestedJSON_DeepAsFits_Survived(t *testing.T) {
	for _, size := range []int{4 << 20, 16 << 20} {
		t.Run(fmt.Sprintf("%d MiB", size>>20), func(t *testing.T) {
			c := startReceiver(t, size)
			for _, signal := range []string{"traces", "metrics", "logs"} {
				status := c.post(t, signal, "application/json", nestedJSON(signal, size-64))
				assert.Contains(t, []int{http.StatusOK, http.StatusBadRequest}, status)
				c.accepts(t, signal)
			}
			t.Logf("peak memory %d MiB", peakMemory(t, c.cmd.Process.Pid)>>20)
			assert.Zero(t, c.terminate(t, stopLimit))
		})
	}
}

// otlpReceiver is a collector that receives OTLP.
type otlpReceiver struct {
	*process
	grpc, http string
}

func startReceiver(t *testing.T, size int) *otlpReceiver {
	t.Helper()
	ports := freePorts(t, 3)
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(nestingConfig, ports[0], size>>20, ports[1], size, ports[2])
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	c := &otlpReceiver{grpc: ports[0], http: ports[1]}
	c.process = start(t, nil, built(t, "otelcol-lockstep"), "--config", config)
	eventually(t, readyLimit, func() error {
		_, err := get("http://" + ports[2] + "/")
		return err
	}, c.process)
	return c
}

// post returns the status of a request over HTTP.
func (c *otlpReceiver) post(t *testing.T, signal, contentType string, body []byte) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.http+"/v1/"+signal, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode
}

func (c *otlpReceiver) refuses(t *testing.T, signal string, body []byte) {
	t.Helper()
	assert.Equal(t, http.StatusBadRequest, c.post(t, signal, "application/x-protobuf", body), signal)
}

// accepts sends a small request each way.
func (c *otlpReceiver) accepts(t *testing.T, signal string) {
	t.Helper()
	body, _ := nestedRequest(signal, 64)
	assert.Equal(t, http.StatusOK, c.post(t, signal, "application/x-protobuf", body), signal)
	assert.Equal(t, grpcOK, c.export(t, signal, body), "%s over gRPC", signal)
}

// refusesGRPC wants an error of the receiver: a message that gRPC itself found too large
// would be RESOURCE_EXHAUSTED and would not have been decoded.
func (c *otlpReceiver) refusesGRPC(t *testing.T, signal string, body []byte) {
	t.Helper()
	status := c.export(t, signal, body)
	assert.NotContains(t, []string{grpcOK, grpcExhausted, grpcUnavailable, ""}, status, "%s over gRPC", signal)
}

// Status codes of gRPC, as its trailer has them.
const (
	grpcOK          = "0"
	grpcExhausted   = "8"
	grpcUnavailable = "14"
)

var grpcServices = map[string]string{
	"traces":  "opentelemetry.proto.collector.trace.v1.TraceService",
	"metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
	"logs":    "opentelemetry.proto.collector.logs.v1.LogsService",
}

// export returns the status of one unary call, made by hand over HTTP/2: an uncompressed
// message is a zero byte, its length in four bytes, and itself.
func (c *otlpReceiver) export(t *testing.T, signal string, message []byte) string {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: (&net.Dialer{}).DialContext}
	defer transport.CloseIdleConnections()
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	ctx, cancel := context.WithTimeout(t.Context(), requestLimit)
	defer cancel()
	url := "http://" + c.grpc + "/" + grpcServices[signal] + "/Export"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(append(frame, message...)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	// A call that fails at once has its status among the headers.
	return resp.Trailer.Get("Grpc-Status") + resp.Header.Get("Grpc-Status")
}

// Field numbers are OTLP's. A resource's attributes are at the same place in each signal:
// request.resource_*[1].resource[1].attributes[1].
const (
	fieldFirst    = 1<<3 | 2 // length-delimited field 1
	fieldKeyValue = 2<<3 | 2 // KeyValue.value
	fieldArray    = 5<<3 | 2 // AnyValue.array_value
)

// nestedRequest returns an export request of at most size bytes, whose resource has one
// attribute of arrays within arrays, and their number.
func nestedRequest(signal string, size int) ([]byte, int) {
	// From the inside out: an array of one value that is an array.
	var tags []byte
	var lengths []int
	length := 0
	wrap := func(tag byte) {
		tags, lengths = append(tags, tag), append(lengths, length)
		length += 1 + len(binary.AppendUvarint(nil, uint64(length)))
	}
	levels := 0
	for length < size-40 {
		wrap(fieldFirst) // ArrayValue.values
		wrap(fieldArray)
		levels++
	}
	const key = "\x0a\x01k" // KeyValue.key
	wrap(fieldKeyValue)
	length += len(key)
	for range 3 { // attributes, resource, resource_spans
		wrap(fieldFirst)
	}
	out := make([]byte, 0, length)
	for i := len(tags) - 1; i >= 0; i-- {
		if tags[i] == fieldKeyValue {
			out = append(out, key...)
		}
		out = binary.AppendUvarint(append(out, tags[i]), uint64(lengths[i]))
	}
	return out, levels
}

var jsonResources = map[string]string{"traces": "resourceSpans", "metrics": "resourceMetrics", "logs": "resourceLogs"}

// nestedJSON returns the same as JSON.
func nestedJSON(signal string, size int) []byte {
	const open, shut = `{"arrayValue":{"values":[`, `]}}`
	head := `{"` + jsonResources[signal] + `":[{"resource":{"attributes":[{"key":"k","value":`
	const foot = `}]}}]}`
	levels := (size - len(head) - len(foot)) / (len(open) + len(shut))
	return []byte(head + strings.Repeat(open, levels) + strings.Repeat(shut, levels) + foot)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory returns the largest resident set that a process ever had, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	match := highWater.FindSubmatch(status)
	require.NotNil(t, match, "VmHWM of /proc/%d/status", pid)
	kib, err := strconv.Atoi(string(match[1]))
	require.NoError(t, err)
	return kib << 10
}
