// SPDX-License-Identifier: Apache-2.0

//go:build unix

package epochcommitreceiver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lockstep-otel/lockstep/internal/component/web"
	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver/internal/metadata"
)

// BenchmarkRefusal is what one message costs that is refused, as the server handles it, without its connection.
func BenchmarkRefusal(b *testing.B) {
	tell := func(job, domain string, domains int) string {
		return fmt.Sprintf(`{"version": 1, "job": %q, "domain": %q, "domains": %d, "life": "a", "sequence": 1,
			"slots": [{"epoch": 1, "attempt": "e", "state": "tentative"}]}`, job, domain, domains)
	}
	full := func(c *carrier, jobs, domains int) {
		for j := range jobs {
			for d := range domains {
				t := bilateral.Tell{Job: fmt.Sprint("job ", j), Domain: fmt.Sprint("rank ", d), Domains: domains, Life: "a", Sequence: 1}
				_, err := c.board.Tell(&t, bilateral.Until{}, time.Now())
				require.NoError(b, err)
			}
		}
	}
	for name, of := range map[string]struct {
		body, token string
		jobs, ranks int
		status      int
	}{
		"token":    {body: tell("job", "rank 0", 2), status: http.StatusUnauthorized},
		"message":  {body: `{`, token: "secret", status: http.StatusBadRequest},
		"conflict": {body: tell("job 0", "another", 1<<17), token: "secret", jobs: 1, ranks: 1 << 17, status: http.StatusConflict},
		"rate":     {body: tell("job", "rank 0", 2), token: "secret", status: http.StatusTooManyRequests},
		"jobs":     {body: tell("another", "rank 0", 2), token: "secret", jobs: defaultMaxJobs, ranks: 1, status: http.StatusServiceUnavailable},
	} {
		b.Run(name, func(b *testing.B) {
			cfg := newDefaultConfig()
			cfg.NetAddr.Endpoint = "127.0.0.1:0"
			cfg.PerPeer.MaxJobs, cfg.PerPeer.MaxDomains, cfg.PerPeer.MessagesPerSecond = cfg.MaxJobs, cfg.MaxDomains, 1e9
			cfg.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: gateID}})
			c, err := newCarrier(receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(b, err)
			if of.status == http.StatusTooManyRequests {
				c.peers = web.NewPeers(web.Limits{Connections: 1, PeerConnections: 1, PeerRate: 1})
			}
			require.NoError(b, c.Start(b.Context(), gate{}))
			b.Cleanup(func() { require.NoError(b, c.Shutdown(context.Background())) })
			full(c, of.jobs, of.ranks)
			b.ReportAllocs()
			cpu := processor()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(of.body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+of.token)
				w := httptest.NewRecorder()
				c.server.Handler.ServeHTTP(w, r)
				if w.Code != of.status {
					b.Fatalf("got status %d: %s; want %d", w.Code, w.Body, of.status)
				}
			}
			b.ReportMetric(float64((processor()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// processor is the time that this process has had of processors.
func processor() time.Duration {
	var of syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &of); err != nil {
		panic(err)
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}
