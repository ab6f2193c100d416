// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// field appends a length-delimited field of a protobuf message.
func field(b []byte, number int, content []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

func fixed(b []byte, number int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(number)<<3|1), v)
}

func message(parts ...[]byte) (b []byte) {
	for i := 0; i < len(parts); i++ {
		b = append(b, parts[i]...)
	}
	return b
}

// attributes are as many as fit in so many bytes, as a field of some number.
func attributes(number, size int) (b []byte, n int) {
	for {
		entry := field(nil, number, field(field(nil, 1, strconv.AppendInt(nil, int64(n), 36)), 2, nil))
		if len(b)+len(entry) > size {
			return b, n
		}
		b = append(b, entry...)
		n++
	}
}

func text(key, value string) []byte {
	return message(field(nil, 1, []byte(key)), field(nil, 2, field(nil, 1, []byte(value))))
}

const now = 1790000000000000000

// operation is a span as sources of operations send it, with more in it.
func operation(more []byte) []byte {
	return message(field(nil, 1, []byte("0123456789abcdef")), field(nil, 2, []byte("01234567")), field(nil, 5, []byte("AllReduce")),
		fixed(nil, 7, now), fixed(nil, 8, now+1000), field(nil, 9, text("lockstep.op.kind", "collective")), more)
}

func resource(more []byte) []byte {
	return message(field(nil, 1, text("lockstep.job.id", "j")), field(nil, 1, message(field(nil, 1, []byte("lockstep.rank")), field(nil, 2, []byte{3 << 3, 1}))), more)
}

// requests are the bodies of one message of each place where attributes may be.
func requests(size int) map[string]struct {
	path string
	body []byte
	n    int
} {
	type request = struct {
		path string
		body []byte
		n    int
	}
	spans := func(resource, scope, span []byte) []byte {
		return field(nil, 1, message(field(nil, 1, resource), field(nil, 2, message(field(nil, 1, scope), field(nil, 2, span)))))
	}
	logs := func(resource, record []byte) []byte {
		return field(nil, 1, message(field(nil, 1, resource), field(nil, 2, field(nil, 2, record))))
	}
	record := func(event string, more []byte) []byte {
		return message(fixed(nil, 1, now), field(nil, 12, []byte(event)), more)
	}
	out := map[string]request{}
	add := func(name, path string, number int, build func(more []byte) []byte) {
		more, n := attributes(number, size-1024)
		out[name] = request{path, build(more), n}
	}
	add("span", "/v1/traces", 9, func(more []byte) []byte { return spans(resource(nil), nil, operation(more)) })
	add("resource", "/v1/traces", 1, func(more []byte) []byte { return spans(resource(more), nil, operation(nil)) })
	add("scope", "/v1/traces", 3, func(more []byte) []byte { return spans(resource(nil), more, operation(nil)) })
	add("event", "/v1/traces", 3, func(more []byte) []byte { return spans(resource(nil), nil, operation(field(nil, 11, more))) })
	add("link", "/v1/traces", 4, func(more []byte) []byte {
		return spans(resource(nil), nil, operation(field(nil, 13, more)))
	})
	for _, event := range []string{"lockstep.op.open", "lockstep.rank.state", "lockstep.clock.edge", "lockstep.finding"} {
		add("log "+event, "/v1/logs", 6, func(more []byte) []byte { return logs(resource(nil), record(event, more)) })
	}
	add("log body", "/v1/logs", 1, func(more []byte) []byte {
		return logs(resource(nil), record("lockstep.rank.state", field(nil, 5, field(nil, 6, more))))
	})
	add("data point", "/v1/metrics", 7, func(more []byte) []byte {
		point := message(more, fixed(nil, 3, now), fixed(nil, 4, 0))
		return field(nil, 1, message(field(nil, 1, resource(nil)), field(nil, 2, field(nil, 2, message(field(nil, 1, []byte("m")), field(nil, 5, field(nil, 1, point)))))))
	})
	return out
}

// published starts a collector with a published configuration, its ports and paths its own.
func published(t *testing.T, name string) (c *collector, otlp string) {
	t.Helper()
	program(t)
	dir := t.TempDir()
	port := map[string]int{}
	for _, of := range []string{"OTLP_GRPC", "OTLP_HTTP", "JAEGER", "PROMETHEUS", "HEALTH", "TIMELINE", "TELEMETRY"} {
		port[of] = freePort(t)
		t.Setenv("LOCKSTEP_"+of+"_ENDPOINT", fmt.Sprintf("127.0.0.1:%d", port[of]))
	}
	t.Setenv("LOCKSTEP_TELEMETRY_PORT", strconv.Itoa(port["TELEMETRY"]))
	for _, of := range []string{"DIR", "TRACES", "DUMPS", "STATE"} {
		path := filepath.Join(dir, strings.ToLower(of))
		require.NoError(t, os.Mkdir(path, 0o700))
		t.Setenv("LOCKSTEP_"+of, path)
	}
	for _, of := range []string{"FINDINGS", "EVENTS", "SPANS"} {
		t.Setenv("LOCKSTEP_"+of, filepath.Join(dir, strings.ToLower(of)+".jsonl"))
	}
	c = run(t, dir, fmt.Sprintf("http://127.0.0.1:%d/metrics", port["TELEMETRY"]), filepath.Join(repository(t), "distro", "config", name+".yaml"))
	c.listens(fmt.Sprintf("127.0.0.1:%d", port["OTLP_HTTP"]))
	return c, fmt.Sprintf("http://127.0.0.1:%d", port["OTLP_HTTP"])
}

// TestAttributes sends a million attributes and more to each place that has some, in messages
// of 4 MiB, as the published configurations take them.
func TestAttributes(t *testing.T) {
	for _, name := range []string{"standalone", "gateway"} {
		t.Run(name, func(t *testing.T) {
			c, otlp := published(t, name)
			const size, repeats = 4<<20 - 1024, 3
			sent, most, longest := 0, 0, time.Duration(0)
			answers := map[int]int{}
			for _, r := range requests(size) {
				if name == "standalone" && r.path == "/v1/metrics" {
					continue // it receives none
				}
				most = max(most, r.n)
				taken := answers[http.StatusOK]
				for range repeats {
					begin := time.Now()
					answers[post(t, otlp+r.path, "application/x-protobuf", r.body)]++
					longest = max(longest, time.Since(begin))
					sent++
				}
				require.Greater(t, answers[http.StatusOK], taken, "a collector takes the message of %s", r.path)
			}
			require.Zero(t, answers[0], "each was answered")
			good := field(nil, 1, message(field(nil, 1, resource(nil)), field(nil, 2, field(nil, 2, operation(nil)))))
			c.eventually("an operation that is taken", func() bool { return post(t, otlp+"/v1/traces", "application/x-protobuf", good) == http.StatusOK })
			c.survives("OTLP, "+name+".yaml", fmt.Sprintf("%d attributes a message, three messages each on span, resource, scope, event, link, log records, body and data point", most), sent,
				fmt.Sprintf("%d accepted, in %.1f s at most", answers[http.StatusOK], longest.Seconds()))
		})
	}
}
