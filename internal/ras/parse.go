// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (p *parser) top(key string) error {
	switch key {
	case "nccl_version":
		return p.value(key, &p.status.NCCLVersion)
	case "timestamp":
		return p.value(key, &p.status.Taken)
	case "communicators":
		p.seen = true
		return p.array("communicators", maxComms, p.comm)
	case "ras":
		return p.object(func(key string) error {
			if key == "timeouts_count" {
				return p.value(key, &p.status.TimeoutsCount)
			}
			return p.skip()
		})
	}
	return p.skip()
}

// value reads a small value of a known kind.
func (p *parser) value(key string, to any) error {
	raw, err := p.raw(key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	return nil
}

// raw reads a value that may take as much as an entry of a rank.
func (p *parser) raw(what string) (json.RawMessage, error) {
	var raw json.RawMessage
	if err := p.dec.Decode(&raw); err != nil {
		return nil, err
	}
	if len(raw) > maxRankBytes {
		return nil, fmt.Errorf("read %s: got %d bytes; want at most %d", what, len(raw), maxRankBytes)
	}
	return raw, nil
}

func (p *parser) comm() error {
	var c Comm
	hashed := false
	err := p.object(func(key string) error {
		switch key {
		case "hash":
			var text string
			if err := p.value(key, &text); err != nil {
				return err
			}
			hashed = true
			var err error
			c.Hash, err = parseHash(text)
			return err
		case "size":
			return p.value(key, &c.Size)
		case "ranks":
			return p.array("ranks", maxRanks, func() error { return p.rank(&c) })
		case "missing_ranks":
			return p.array("missing ranks", maxRanks, func() error { return p.missing(&c) })
		}
		return p.skip()
	})
	if err != nil {
		return err
	}
	if !hashed {
		return errors.New("read communicator: got no hash")
	}
	if c.Size < 1 || c.Size > maxRanks {
		return fmt.Errorf("read communicator: got size %d; want 1 to %d", c.Size, maxRanks)
	}
	for i := range c.Ranks {
		if err := c.check(c.Ranks[i].Rank); err != nil {
			return err
		}
	}
	for i := range c.Missing {
		if err := c.check(c.Missing[i].Rank); err != nil {
			return err
		}
	}
	p.status.Comms = append(p.status.Comms, c)
	return nil
}

func (c *Comm) check(rank int) error {
	if rank < 0 || rank >= c.Size {
		return fmt.Errorf("read communicator: got rank %d; want 0 to %d", rank, c.Size-1)
	}
	return nil
}

func parseHash(text string) (uint64, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	h, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("read hash: got %.20q; want 0x and at most 16 hex digits", text)
	}
	return h, nil
}

// member is an entry of a rank as it is written.
type member struct {
	Process
	Status struct {
		Errors
		Unresponsive   bool `json:"unresponsive"`
		ConsideredDead bool `json:"considered_dead"`
	} `json:"status"`
	Counts map[string]uint64 `json:"collective_counts"`
}

func (p *parser) member() (m member, err error) {
	if p.ranks++; p.ranks > maxRanks {
		return m, fmt.Errorf("got more than %d ranks: %w", maxRanks, errTooLarge)
	}
	m.Rank, m.PID, m.CUDADev = -1, -1, -1
	err = p.value("rank", &m)
	m.Host = p.name(m.Host)
	return m, err
}

func (p *parser) rank(c *Comm) error {
	m, err := p.member()
	if err != nil {
		return err
	}
	if len(m.Counts) > maxFunctions {
		return fmt.Errorf("read rank %d: got %d functions; want at most %d", m.Rank, len(m.Counts), maxFunctions)
	}
	r := Rank{Process: m.Process, Errors: m.Status.Errors}
	for _, name := range slices.Sorted(maps.Keys(m.Counts)) {
		n := m.Counts[name]
		if n > maxCount {
			return fmt.Errorf("read rank %d: got %d launches of %.40q; want at most %d", m.Rank, n, name, int64(maxCount))
		}
		r.Counts = append(r.Counts, Count{Func: p.name(name), N: int64(n)})
	}
	c.Ranks = append(c.Ranks, r)
	return nil
}

func (p *parser) missing(c *Comm) error {
	m, err := p.member()
	if err == nil {
		c.Missing = append(c.Missing, MissingRank{Process: m.Process, Unresponsive: m.Status.Unresponsive, ConsideredDead: m.Status.ConsideredDead})
	}
	return err
}

// name returns the one copy of a string that many entries have.
func (p *parser) name(s string) string {
	if known, ok := p.names[s]; ok {
		return known
	}
	if len(p.names) < maxNames {
		p.names[s] = s
	}
	return s
}
