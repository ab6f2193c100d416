// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// RankPlaceholder stands for a rank in the address of an endpoint.
const RankPlaceholder = "{rank}"

// Endpoint is one process's debug server.
type Endpoint struct {
	URL     string
	Rank    int64
	HasRank bool
}

// ParseEndpoint expands an address over ranks, for which it has a placeholder; without one,
// it is of the only rank, or of one that is to be found out.
func ParseEndpoint(address string, ranks []int64) ([]Endpoint, error) {
	if !strings.Contains(address, RankPlaceholder) {
		if len(ranks) > 1 {
			return nil, fmt.Errorf("read endpoint: got %q for %d ranks; want %q in it", address, len(ranks), RankPlaceholder)
		}
		base, err := baseURL(address)
		e := Endpoint{URL: base}
		if len(ranks) == 1 {
			e.Rank, e.HasRank = ranks[0], true
		}
		return []Endpoint{e}, err
	}
	if len(ranks) == 0 {
		return nil, fmt.Errorf("read endpoint: got %q without ranks; want those that stand for %q", address, RankPlaceholder)
	}
	var out []Endpoint
	for _, r := range ranks {
		base, err := baseURL(strings.ReplaceAll(address, RankPlaceholder, strconv.FormatInt(r, 10)))
		if err != nil {
			return nil, err
		}
		out = append(out, Endpoint{URL: base, Rank: r, HasRank: true})
	}
	return out, nil
}

func baseURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("read endpoint: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("read endpoint: got %q; want http://host:port or https://host:port", address)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// Puller asks the debug servers of PyTorch's processes for dumps. It is safe for concurrent
// use.
type Puller struct {
	client  *http.Client
	limit   int64
	options flightrecorder.Options
	cache   atomic.Pointer[flightrecorder.Cache]
}

// maxConnections bounds those that are open to servers at a time, once they are idle.
const maxConnections = 64

// NewPuller returns one that reads at most limit bytes of an answer, and waits for it as
// long as timeout; options are those of decoding.
func NewPuller(timeout time.Duration, limit int64, options flightrecorder.Options) *Puller {
	p := &Puller{limit: limit, options: options, client: &http.Client{
		Timeout: timeout,
		// The servers are in the job: no proxy is between, and none of them refers to another.
		Transport:     &http.Transport{MaxIdleConns: maxConnections, MaxIdleConnsPerHost: 1, IdleConnTimeout: timeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	p.Renew()
	return p
}

// Renew forgets what the dumps had in common that were read so far: the groups of jobs that
// are over would fill the room of those that run.
func (p *Puller) Renew() { p.cache.Store(flightrecorder.NewCache()) }

// Close closes idle connections.
func (p *Puller) Close() { p.client.CloseIdleConnections() }

// handler is a way of a debug server to give a dump.
type handler struct {
	name  string
	query url.Values
}

// handlers are those that give dumps, the one that says most first: only the pickle has
// stacks, and fr_trace_json leaves out what is over.
func (p *Puller) handlers() []handler {
	all := url.Values{"includecollectives": {"true"}, "onlyactive": {"false"}}
	pickle := url.Values{"includestacktraces": {strconv.FormatBool(p.options.Stacks)}}
	for k, v := range all {
		pickle[k] = v
	}
	return []handler{
		{"dump_nccl_trace_pickle", pickle},
		{"dump_nccl_trace_json", all},
		{"fr_trace_json", nil},
		{"torchcomms_fr_trace_json", nil},
	}
}

// maxHandlers bounds the list of a server's handlers, bytes: there are some tens.
const maxHandlers = 64 << 10

// ErrNoHandler says that a server answers, and gives no dumps.
var ErrNoHandler = errors.New("no handler that gives a dump")

// ErrDamaged says that what a server gave is no dump that can be read.
var ErrDamaged = errors.New("not readable")

// Pull asks one server for its dump, by the best handler that it has. One that gives an
// empty dump is not the last: in a process of Gloo, those of NCCL do.
func (p *Puller) Pull(ctx context.Context, e *Endpoint) (*flightrecorder.Dump, error) {
	offered, err := p.offered(ctx, e)
	if err != nil {
		return nil, err
	}
	var empty *flightrecorder.Dump
	var failed error
	for _, h := range p.handlers() {
		if !slices.Contains(offered, h.name) {
			continue
		}
		address := e.URL + "/handler/" + h.name
		if len(h.query) > 0 {
			address += "?" + h.query.Encode()
		}
		dump, err := p.dump(ctx, address)
		switch {
		case err == nil && len(dump.Entries) > 0:
			return dump, nil
		case err == nil:
			empty = cmp.Or(empty, dump)
		case errors.Is(err, errStatus), errors.Is(err, ErrDamaged):
			failed = cmp.Or(failed, err)
		default:
			return nil, err
		}
	}
	if empty != nil {
		return empty, nil
	}
	if failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("ask %s for a dump: got handlers %q: %w", e.URL, offered, ErrNoHandler)
}

func (p *Puller) dump(ctx context.Context, address string) (*flightrecorder.Dump, error) {
	body, err := p.do(ctx, http.MethodPost, address, p.limit)
	if err != nil {
		return nil, err
	}
	options := p.options
	options.Cache = p.cache.Load()
	dump, err := flightrecorder.Decode(body, options)
	if err != nil {
		return nil, fmt.Errorf("read answer of %s: %w: %w", address, ErrDamaged, err)
	}
	return dump, nil
}

func (p *Puller) offered(ctx context.Context, e *Endpoint) ([]string, error) {
	address := e.URL + "/handler/"
	body, err := p.do(ctx, http.MethodGet, address, maxHandlers)
	if err != nil {
		return nil, err
	}
	var names []string
	if err := json.Unmarshal(body, &names); err != nil {
		return nil, fmt.Errorf("read handlers of %s: %w", address, err)
	}
	return names, nil
}

// errStatus: a server answered with a status other than that all is well.
var errStatus = errors.New("unexpected status")

func (p *Puller) do(ctx context.Context, method, address string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for a dump: %w", err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for a dump: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
		return nil, fmt.Errorf("ask %s: got %s %q: %w", address, resp.Status, why, errStatus)
	}
	return readAll(resp.Body, address, resp.ContentLength, limit)
}

// maxReason bounds what is told of an answer that says what is wrong, bytes.
const maxReason = 256
