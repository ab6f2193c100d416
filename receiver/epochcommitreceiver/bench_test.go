// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver/internal/metadata"
)

// BenchmarkSave is one save of 1,024 domains over HTTP, each with a connection of its own and all at
// once: from when all are tentative to when all are committed. The clients take the same cores.
func BenchmarkSave(b *testing.B) {
	const domains = 1024
	c, err := newCarrier(receivertest.NewNopSettings(metadata.Type), newDefaultConfig(), consumertest.NewNop())
	require.NoError(b, err)
	server := httptest.NewServer(c.handler())
	transport := &http.Transport{MaxIdleConnsPerHost: domains}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		require.NoError(b, c.Shutdown(b.Context()))
	})
	client := &http.Client{Transport: transport}
	say := func(domain, sequence int, epoch int64, state, until string) error {
		body := fmt.Appendf(nil, `{"version": 1, "job": "job", "domain": "rank %d", "domains": %d, "life": "a", "sequence": %d,
			"slots": [{"epoch": %d, "attempt": "e", "state": %q}], "wait": {"for": %q, "epoch": %d, "seconds": 10}}`,
			domain, domains, sequence, epoch, state, until, epoch)
		r, err := client.Post(server.URL+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer func() { _ = r.Body.Close() }()
		var a struct{ Saves []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body)
		if err == nil && a.Saves[0][until] != float64(domains) {
			err = fmt.Errorf("wait for %s: got %v; want %d", until, a.Saves[0], domains)
		}
		return err
	}
	for epoch := int64(1); b.Loop(); epoch++ {
		var all sync.WaitGroup
		for i := range domains {
			all.Go(func() {
				for k, step := range [][2]string{{"tentative", "tentative"}, {"reflecting", "reflecting"}} {
					if err := say(i, 3*int(epoch)+k, epoch, step[0], step[1]); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/save")
}
