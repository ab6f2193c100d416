// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The limits of an answer, beside its bytes.
const (
	// maxComms bounds the communicators: as many as a registry of them holds.
	maxComms = 1 << 16
	// maxRanks bounds the entries of ranks over all communicators: 131,072 ranks of eight
	// communicators each.
	maxRanks = 1 << 20
	// maxRankBytes bounds one entry, which takes some 550 bytes.
	maxRankBytes = 4096
	// maxDepth bounds values within one another that are passed over.
	maxDepth = 64
	// maxFunctions bounds the functions of one entry; NCCL has under ten.
	maxFunctions = 64
	// maxCount bounds the launches of a function: a million a second take a year and a half.
	// What is more was not counted.
	maxCount = 1 << 45
	// maxNames bounds the names of functions that are kept.
	maxNames = 256
)

// Status is what RAS says of one job.
type Status struct {
	NCCLVersion string
	Comms       []Comm
	// TimeoutsCount is how often parts of the job did not answer in time.
	TimeoutsCount int64
	// Taken is when the answer was given, by a clock of an unknown time zone; empty where it does
	// not say: "2026-02-03 10:00:00".
	Taken string
	// Prose: it is an answer in text, which lists the communicators that have a difference, and of
	// their members those that stand out.
	Prose bool
	// GPUs are those of the whole job, as prose counts them; 0 where it does not.
	GPUs int
	// Flagged is what prose's table says of a communicator that differs or failed: "MISMATCH".
	Flagged string
	// Rows are those of prose's table of communicators, and Left how many of them have no member any
	// more ("NOCOMM").
	Rows, Left int
	// Nothing: prose says that it has no communicator's data.
	Nothing bool
	// Dead are the processes that prose lists as dead, one entry for each of their GPUs; Rank is -1.
	Dead []Process

	open map[int]bool // groups of prose's table that differ, and of which no communicator is listed
}

// Cut reports whether an answer in text ends in front of its communicators, or before it says which
// ranks differ, which its table of communicators announces.
func (s *Status) Cut() bool {
	if s.Prose && s.Rows == 0 && len(s.Comms) == 0 && !s.Nothing {
		return true
	}
	return s.Flagged != "" && !slices.ContainsFunc(s.Comms, func(c Comm) bool { return c.listed() })
}

// listed reports whether a text says anything of the communicator.
func (c *Comm) listed() bool { return len(c.Ranks)+len(c.Missing)+len(c.Unlisted) > 0 }

// Whole reports whether a communicator that an answer in text does not list has no difference.
func (s *Status) Whole() bool { return s.Prose && s.Rows > s.Left && len(s.open) == 0 && !s.Cut() }

// Empty reports whether an answer has no communicator with a member.
func (s *Status) Empty() bool { return len(s.Comms) == 0 && s.Rows == s.Left }

// Comm is one communicator.
type Comm struct {
	Hash    uint64
	Size    int
	Ranks   []Rank // that answered
	Missing []MissingRank
	// Unlisted are differences of which prose does not say which members have them, in words.
	Unlisted []string
}

// Process is where a rank runs.
type Process struct {
	Rank    int    `json:"rank"` // in the communicator
	Host    string `json:"host"` // address, or "unknown"
	PID     int    `json:"pid"`  // -1: unknown
	CUDADev int    `json:"cuda_dev"`
}

// Rank is a member that answered.
type Rank struct {
	Process
	Errors
	Counts []Count
}

// Errors are what a member says of its state on the communicator. The numbers are NCCL's
// results: 0 is success, 7 in progress.
type Errors struct {
	InitState      int  `json:"init_state"`
	AsyncError     int  `json:"async_error"`
	FinalizeCalled bool `json:"finalize_called"`
	DestroyFlag    bool `json:"destroy_flag"`
	AbortFlag      bool `json:"abort_flag"`
}

// Count is how many operations of a function were launched.
type Count struct {
	Func string // as NCCL spells it: AllReduce
	N    int64
}

// MissingRank is a member that did not answer for the communicator. One that is neither
// unresponsive nor considered dead answered that it is no member any more.
type MissingRank struct {
	Process
	Unresponsive, ConsideredDead bool
}

var errTooLarge = errors.New("too large")

// Parse reads the JSON of VERBOSE STATUS up to its end, at most limit bytes.
func Parse(in io.Reader, limit int64) (*Status, error) {
	s, err := parseObject(&limited{in: in, left: limit, limit: limit})
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return s, nil
}

// parseObject reads the object of one answer.
func parseObject(in io.Reader) (*Status, error) {
	p := parser{names: map[string]string{}}
	p.dec = json.NewDecoder(in)
	if err := p.object(p.top); err != nil {
		return nil, fmt.Errorf("byte %d: %w", p.dec.InputOffset(), err)
	}
	if !p.seen {
		return nil, errors.New("got no communicators")
	}
	return &p.status, nil
}

// limited fails where more is read than the limit.
type limited struct {
	in          io.Reader
	left, limit int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("got more than %d bytes: %w", l.limit, errTooLarge)
	}
	n, err := l.in.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

type parser struct {
	dec    *json.Decoder
	status Status
	seen   bool // communicators
	ranks  int
	names  map[string]string
}

// object calls each for every key, which must read the value.
func (p *parser) object(each func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := each(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

// array calls each for every element, which must read it.
func (p *parser) array(what string, limit int, each func() error) error {
	if err := p.delim('['); err != nil {
		return err
	}
	for n := 0; p.dec.More(); n++ {
		if n == limit {
			return fmt.Errorf("got more than %d %s: %w", limit, what, errTooLarge)
		}
		if err := each(); err != nil {
			return err
		}
	}
	return p.delim(']')
}

func (p *parser) delim(want json.Delim) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	if got, ok := t.(json.Delim); !ok || got != want {
		return fmt.Errorf("got %v; want %v", t, want)
	}
	return nil
}

// skip passes over a value without keeping it.
func (p *parser) skip() error {
	depth := 0
	for {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return fmt.Errorf("got values nested deeper than %d; want at most that", maxDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
