// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
)

const (
	// headerTimeout is for a header of a kilobyte or two.
	headerTimeout = 5 * time.Second
	// readTimeout is for a body of some kilobytes.
	readTimeout = 15 * time.Second
	// maxBody has room for any message of ours.
	maxBody = 16 << 10
	// maxHeader has room for a token of some kilobytes. net/http takes 1 MiB where nothing is set.
	maxHeader = 16 << 10
)

// DefaultConfig returns the settings of a server that takes small requests.
func DefaultConfig(endpoint string) confighttp.ServerConfig {
	cfg := confighttp.NewDefaultServerConfig()
	cfg.NetAddr.Endpoint = endpoint
	cfg.ReadHeaderTimeout, cfg.ReadTimeout, cfg.MaxRequestBodySize = headerTimeout, readTimeout, maxBody
	return cfg
}

// CheckConfig reports settings by which a client may take for ever.
func CheckConfig(cfg *confighttp.ServerConfig) error {
	if cfg.ReadHeaderTimeout > 0 || cfg.ReadTimeout > 0 {
		return nil
	}
	return fmt.Errorf("check read_header_timeout: got %v, and no read_timeout; want more than 0 for one of them, with a unit", cfg.ReadHeaderTimeout)
}

// NewServer returns a server that authenticates a client first, and then checks the limits of peers. A client
// without credentials takes nothing from the clients that have them, whatever address both have.
func NewServer(ctx context.Context, cfg *confighttp.ServerConfig, peers *Peers, host component.Host, set component.TelemetrySettings, handler http.Handler) (*http.Server, error) {
	server, err := cfg.ToServer(ctx, host.GetExtensions(), set, peers.handler(handler))
	if err != nil {
		return nil, err
	}
	server.MaxHeaderBytes = maxHeader
	server.ConnState = peers.connState
	server.Handler = peers.guard(server.Handler)
	return server, nil
}
