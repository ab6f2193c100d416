// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver/internal/metadata"
)

// gate is a server authenticator that lets one token in.
type gate struct{}

var gateID = component.MustNewID("gate")

func (gate) Start(context.Context, component.Host) error { return nil }
func (gate) Shutdown(context.Context) error              { return nil }
func (gate) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{gateID: gate{}}
}

func (gate) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	if h := headers["Authorization"]; len(h) == 1 && h[0] == "Bearer secret" {
		return ctx, nil
	}
	return ctx, errors.New("missing or empty authorization header: authorization")
}

// serve starts a receiver with a server of its own. Its handler is asked as though from any address.
func serve(t *testing.T, change func(*Config)) (ask func(peer, token, body string) (int, string), c *carrier, logs *observer.ObservedLogs) {
	t.Helper()
	cfg := newDefaultConfig()
	cfg.NetAddr.Endpoint = "127.0.0.1:0"
	if change != nil {
		change(cfg)
	}
	set := receivertest.NewNopSettings(metadata.Type)
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	var err error
	c, err = newCarrier(set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), gate{}))
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	return func(peer, token, body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.RemoteAddr = peer + ":1"
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		c.server.Handler.ServeHTTP(w, r)
		text, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		return w.Code, string(text)
	}, c, logs
}

func TestAuth_WithoutToken_NothingIsTold(t *testing.T) {
	ask, c, _ := serve(t, func(c *Config) {
		c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: gateID}})
	})
	for _, token := range []string{"", "guessed"} {
		code, _ := ask("10.0.0.1", token, says("rank 0", 1, 5, "tentative"))
		assert.Equal(t, http.StatusUnauthorized, code)
	}
	assert.EqualValues(t, 2, c.peers.Unauthenticated())
	code, text := ask("10.0.0.1", "secret", says("rank 1", 1, 5, "tentative"))
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `"heard":1`)
}

func TestNoAuth_OnAnyAddress_IsWarnedOf(t *testing.T) {
	for endpoint, want := range map[string]int{"127.0.0.1:0": 0, "0.0.0.0:0": 1} {
		_, _, logs := serve(t, func(c *Config) { c.NetAddr.Endpoint = endpoint })
		assert.Equal(t, want, logs.FilterMessageSnippet("can speak for a rank").Len(), endpoint)
	}
}

func TestPeers_NeighbourFillsTheTable_OthersHaveRoom(t *testing.T) {
	ask, _, _ := serve(t, nil)
	codes := map[int]int{}
	for i := range 2 * defaultMaxJobs {
		code, _ := ask("10.0.0.9", "", strings.ReplaceAll(says("rank 0", 1, 5, "tentative"), `"job": "job"`, fmt.Sprintf(`"job": "junk %d"`, i)))
		codes[code]++
	}
	assert.Equal(t, map[int]int{200: defaultMaxJobs / defaultShare, 503: 2*defaultMaxJobs - defaultMaxJobs/defaultShare}, codes)
	code, _ := ask("10.0.0.1", "", says("rank 0", 1, 5, "tentative"))
	assert.Equal(t, http.StatusOK, code)
}

func TestPeers_NeighbourSpeaksForALivingRank_IsRefused(t *testing.T) {
	ask, _, _ := serve(t, nil)
	code, _ := ask("10.0.0.1", "", says("rank 0", 1, 5, "tentative"))
	require.Equal(t, http.StatusOK, code)
	code, text := ask("10.0.0.9", "", strings.ReplaceAll(says("rank 0", 99, 5, "committed"), `"life": "a"`, `"life": "b"`))
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "got another process at another address")
	code, text = ask("10.0.0.1", "", says("rank 0", 2, 5, "tentative"))
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `"committed":0`)
}

func TestPeers_NeighbourAsksOnAndOn_OthersAreAnswered(t *testing.T) {
	ask, _, _ := serve(t, func(c *Config) { c.PerPeer.MessagesPerSecond = 1 })
	for i := range 11 {
		code, _ := ask("10.0.0.9", "", says("rank 0", i+1, 5, "tentative"))
		require.Equal(t, http.StatusOK, code)
	}
	began := time.Now()
	code, _ := ask("10.0.0.1", "", says("rank 1", 1, 5, "tentative"))
	assert.Equal(t, http.StatusOK, code)
	assert.Less(t, time.Since(began), time.Second)
}

// A client without a token may have the address of a rank, as on one machine. It uses up none of the rank's
// messages.
func TestPeers_StrangerAtTheAddressOfARank_TheRankIsAnswered(t *testing.T) {
	ask, c, _ := serve(t, func(c *Config) {
		c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: gateID}})
		c.PerPeer.MessagesPerSecond = 1
	})
	for range 10 {
		code, _ := ask("127.0.0.1", "guessed", says("rank 0", 1, 5, "tentative"))
		require.Equal(t, http.StatusUnauthorized, code)
	}
	began := time.Now()
	for i := range 10 {
		code, _ := ask("127.0.0.1", "secret", says("rank 0", i+1, 5, "tentative"))
		require.Equal(t, http.StatusOK, code)
	}
	assert.Less(t, time.Since(began), time.Second)
	assert.Zero(t, c.peers.Refused())
}
