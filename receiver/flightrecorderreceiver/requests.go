// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// requests asks processes for dumps. It is safe for concurrent use.
type requests struct {
	mu   sync.Mutex
	last time.Time
}

// Outcomes of a request.
const (
	requestDone    = "done"
	requestTooSoon = "too_soon"
	requestNobody  = "nobody_asked"
)

// answer is what who asks for dumps is told.
type answer struct {
	Outcome   string       `json:"outcome"`
	Pipes     []pipeAnswer `json:"pipes,omitempty"`
	Endpoints int          `json:"endpoints,omitempty"` // that are asked now
	Error     string       `json:"error,omitempty"`
}

type pipeAnswer struct {
	Rank  int64  `json:"rank"`
	Path  string `json:"path"`
	Error string `json:"error,omitempty"`
}

// request asks every process that can be asked.
func (h *dumpCollector) request(ctx context.Context, now time.Time) answer {
	h.requests.mu.Lock()
	defer h.requests.mu.Unlock()
	a := answer{Outcome: requestTooSoon}
	if h.requests.last.IsZero() || now.Sub(h.requests.last) >= h.cfg.Trigger.MinInterval {
		h.requests.last = now
		h.requested.Store(now.UnixNano())
		a = h.ask()
	}
	h.telemetry.ReceiverFlightRecorderRequests.Add(ctx, 1, reason(a.Outcome))
	return a
}

func (h *dumpCollector) ask() answer {
	a := answer{Outcome: requestNobody}
	var errs []error
	for _, prefix := range h.cfg.Trigger.Pipes {
		results, err := frwatch.RequestByPipe(prefix)
		errs = append(errs, err)
		for _, r := range results {
			p := pipeAnswer{Rank: r.Rank, Path: r.Path}
			if r.Err != nil {
				p.Error = r.Err.Error()
				h.log.Warn("Process not asked for a dump", zap.Int64("rank", r.Rank), zap.Error(r.Err))
			} else {
				a.Outcome = requestDone
			}
			a.Pipes = append(a.Pipes, p)
		}
	}
	if a.Endpoints = h.puller.ask(); a.Endpoints > 0 {
		a.Outcome = requestDone
	}
	if err := errors.Join(errs...); err != nil {
		a.Error = err.Error()
	}
	return a
}

// pulled takes what came of a debug server, or the end of a round.
func (h *dumpCollector) pulled(p pulled) {
	if p.end {
		h.tell(h.pulls.End(true), false)
		return
	}
	if p.err != nil {
		h.notPulled(&p)
		return
	}
	rank := p.endpoint.Rank
	if !p.endpoint.HasRank {
		var ok bool
		if rank, ok = frwatch.OwnRank(p.dump.Groups); !ok {
			h.telemetry.ReceiverFlightRecorderPullsFailed.Add(h.out.ctx, 1, reason(failedNoRank))
			h.fail(failedNoRank, p.endpoint.URL, -1, errors.New("find rank of dump: its groups have no member, or several, in common; want ranks of the endpoint"))
			return
		}
	}
	delete(h.failing, p.endpoint.URL)
	state := h.take(p.dump, &source{job: h.jobs.ID, name: p.endpoint.URL, rank: rank, time: p.at, asked: p.asked, host: p.host})
	h.pulls.Add(p.at, frwatch.Dump{Job: h.jobs.ID, Source: p.endpoint.URL, Rank: rank, Time: p.at, State: state})
}

// Reasons for which a server gives no dump, beside those of dumps.
const (
	pullRefused = "refused" // nobody listens
	pullTimeout = "timeout"
	pullOther   = "other"
	pullHandler = "no_handler"
)

// notPulled tells of a server that gave no dump. That nobody listens does not prove that the
// process is gone: it may have stopped listening.
func (h *dumpCollector) notPulled(p *pulled) {
	why, absence := pullOther, model.AbsentMissing
	var netErr net.Error
	switch {
	case errors.Is(p.err, frwatch.ErrDamaged):
		why, absence = failedDamaged, model.AbsentUnreadable
	case errors.Is(p.err, syscall.ECONNREFUSED):
		why = pullRefused
	case errors.Is(p.err, frwatch.ErrNoHandler):
		why = pullHandler
	case errors.Is(p.err, frwatch.ErrTooLarge):
		why, absence = failedTooLarge, model.AbsentUnreadable
	case errors.Is(p.err, os.ErrDeadlineExceeded), errors.Is(p.err, context.DeadlineExceeded), errors.As(p.err, &netErr) && netErr.Timeout():
		why, absence = pullTimeout, model.AbsentLate
	}
	h.telemetry.ReceiverFlightRecorderPullsFailed.Add(h.out.ctx, 1, reason(why))
	if h.failing[p.endpoint.URL] != why {
		h.failing[p.endpoint.URL] = why // said once as long as it stays so; texts have ports that change
		h.log.Warn("No dump of a debug server", zap.String("url", p.endpoint.URL), zap.String("reason", why), zap.Error(p.err))
	}
	if p.endpoint.HasRank {
		h.pulls.Add(p.at, frwatch.Dump{Job: h.jobs.ID, Source: p.endpoint.URL, Rank: p.endpoint.Rank, Time: p.at, Fault: p.err.Error(), Absence: absence})
	}
}
