// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/component/web"
	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
)

// What came of a message.
const (
	messageAnswered = "answered"
	messageInvalid  = "invalid"
	messageConflict = "conflict"
	messageFull     = "full"
	messageHeld     = "held"
)

// outcomes are made once: a refusal must cost little.
var outcomes = func(names ...string) map[string]metric.AddOption {
	options := map[string]metric.AddOption{}
	for _, o := range names {
		options[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", o)))
	}
	return options
}(messageAnswered, messageInvalid, messageConflict, messageFull, messageHeld)

const path = "/v1/commit"

func (c *carrier) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, c.take)
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		jobs := c.board.Jobs()
		out := make([]*bilateral.Job, len(jobs))
		for i := range jobs {
			out[i] = &jobs[i]
		}
		answer(w, http.StatusOK, map[string]any{"version": bilateral.Version, "jobs": out})
	})
	// A page of another site, open in a browser on this network, must not speak for a domain.
	return http.NewCrossOriginProtection().Handler(mux)
}

// take takes one message, and answers when there is what it waits for, or when it has waited long
// enough.
func (c *carrier) take(w http.ResponseWriter, r *http.Request) {
	outcome, status := messageAnswered, http.StatusOK
	a, err := c.tell(r)
	switch {
	case errors.Is(err, bilateral.ErrConflict):
		outcome, status = messageConflict, http.StatusConflict
	case errors.Is(err, bilateral.ErrHeld):
		outcome, status = messageHeld, http.StatusServiceUnavailable
	case errors.Is(err, bilateral.ErrFull):
		outcome, status = messageFull, http.StatusServiceUnavailable
	case err != nil:
		outcome, status = messageInvalid, http.StatusBadRequest
	}
	c.telemetry.ReceiverEpochCommitMessages.Add(r.Context(), 1, outcomes[outcome])
	if err != nil {
		answer(w, status, map[string]string{"error": err.Error()})
		return
	}
	answer(w, status, &a)
}

func (c *carrier) tell(r *http.Request) (bilateral.Answer, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return bilateral.Answer{}, fmt.Errorf("check Content-Type: got %.40q; want application/json", r.Header.Get("Content-Type"))
	}
	// One byte more than is taken tells what is too long.
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return bilateral.Answer{}, fmt.Errorf("read message: %w", err)
	}
	if len(data) > maxBody {
		return bilateral.Answer{}, fmt.Errorf("read message: got more than %d bytes; want at most so many", maxBody)
	}
	told, until, wait, err := bilateral.ParseMessage(data)
	if err != nil {
		return bilateral.Answer{}, err
	}
	told.Peer = web.PeerOf(r.RemoteAddr)
	if wait == 0 {
		return c.board.Tell(&told, until, time.Now())
	}
	if !c.mayWait() {
		c.telemetry.ReceiverEpochCommitMessagesHurried.Add(r.Context(), 1)
		return c.board.Tell(&told, until, time.Now())
	}
	defer c.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	return c.board.Wait(ctx, &told, until)
}

// mayWait reports whether one more may wait. Who waits with more connections than there may be domains
// is answered at once.
func (c *carrier) mayWait() bool {
	if c.waiting.Add(1) <= int64(c.cfg.MaxDomains) {
		return true
	}
	c.waiting.Add(-1)
	return false
}

func answer(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a domain that has gone tells again
}
