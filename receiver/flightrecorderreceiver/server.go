// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/lockstep-otel/lockstep/internal/component/web"
)

// server takes requests for dumps. The nil server takes none.
type server struct {
	cfg      *confighttp.ServerConfig
	request  func(context.Context, time.Time) answer
	http     *http.Server
	listener net.Listener
	finished chan struct{}
}

func newServer(cfg *TriggerConfig, request func(context.Context, time.Time) answer) *server {
	if cfg.NetAddr.Endpoint == "" {
		return nil
	}
	return &server{cfg: &cfg.ServerConfig, request: request, finished: make(chan struct{})}
}

func (s *server) start(ctx context.Context, host component.Host, set component.TelemetrySettings) error {
	if s == nil {
		return nil
	}
	var err error
	// A page of another site, open in a browser on this host, must not ask.
	handler := http.NewCrossOriginProtection().Handler(s.handler())
	if s.http, err = web.NewServer(ctx, s.cfg, web.NewPeers(web.DefaultLimits()), host, set, handler); err != nil {
		return fmt.Errorf("create server of requests for dumps: %w", err)
	}
	if s.listener, err = s.cfg.ToListener(ctx); err != nil {
		return fmt.Errorf("listen for requests for dumps: %w", err)
	}
	go func() {
		defer close(s.finished)
		if err := s.http.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("serve requests for dumps: %w", err)))
		}
	}()
	return nil
}

// grace is how long answers that have begun may take at the end; what takes longer is a slow client.
const grace = time.Second

func (s *server) stop(ctx context.Context) error {
	if s == nil || s.listener == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := s.http.Shutdown(ctx)
	<-s.finished
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if err != nil {
		return fmt.Errorf("stop server of requests for dumps: %w", err)
	}
	return nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /trigger", func(w http.ResponseWriter, r *http.Request) {
		if rebound(r) {
			http.Error(w, "a page may ask by address only, not by name", http.StatusForbidden)
			return
		}
		a := s.request(r.Context(), time.Now())
		w.Header().Set("Content-Type", "application/json")
		switch a.Outcome {
		case requestTooSoon:
			w.WriteHeader(http.StatusTooManyRequests)
		case requestNobody:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
		_ = json.NewEncoder(w).Encode(a) // a client that has gone needs no answer
	})
	return mux
}

// rebound reports whether a browser asks by a name: a page whose name was made to lead to this
// host is of one origin with it, so that only an address tells whom it meant.
func rebound(r *http.Request) bool {
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return false // no browser
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil && !strings.EqualFold(host, "localhost")
}
