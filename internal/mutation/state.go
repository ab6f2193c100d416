// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Record is the verdict on one mutant.
type Record struct {
	Mutant

	// Tests identifies the compiled tests and all that they import. A verdict holds while
	// they are the same.
	Tests string  `json:"tests"`
	Quick Outcome `json:"quick"`
	// Full is empty where the quick tier killed the mutant, which then is not run in full.
	Full Outcome `json:"full,omitempty"`
	// By is the package whose tests killed the mutant, and Test the first that failed, where
	// its name is known.
	By   string `json:"by,omitempty"`
	Test string `json:"test,omitempty"`
	// Chance has the tests that failed once and passed then, each time.
	Chance []string `json:"chance,omitempty"`
	// Seconds is the time of compiling and running.
	Seconds float64 `json:"seconds"`
	// Rules says by which rules the verdict came.
	Rules int `json:"rules"`
}

// baseline is how long the tests take on unchanged sources.
type baseline struct {
	Path    string  `json:"suite"`
	Tests   string  `json:"tests"`
	Tier    string  `json:"tier"`
	Seconds float64 `json:"seconds"`
}

// entry is a line of the state's file: one of the two.
type entry struct {
	Baseline *baseline `json:"baseline,omitempty"`
	Mutant   *Record   `json:"mutant,omitempty"`
}

// State keeps what was judged and measured, in a file of JSON lines where it has one. It is
// safe for concurrent use.
type State struct {
	mu        sync.Mutex
	file      *os.File
	records   map[recordKey]Record
	baselines map[baselineKey]time.Duration
}

type recordKey struct{ id, tests string }

type baselineKey struct{ path, tests, tier string }

// OpenState reads the file at path, and creates it where it is missing. With an empty path
// the state lives in memory. A last line that was cut off is dropped.
func OpenState(path string) (*State, error) {
	s := &State{records: map[recordKey]Record{}, baselines: map[baselineKey]time.Duration{}}
	if path == "" {
		return s, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open state: %w", err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range bytes.Lines(whole) {
		number++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("open state: %s, line %d: %w", path, number, err)
		}
		s.remember(e)
	}
	s.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if err := s.file.Truncate(int64(len(whole))); err != nil {
		_ = s.file.Close()
		return nil, fmt.Errorf("open state: %w", err)
	}
	return s, nil
}

func (s *State) remember(e entry) {
	if r := e.Mutant; r != nil && r.Rules == rules {
		s.records[recordKey{r.ID(), r.Tests}] = *r
	}
	if b := e.Baseline; b != nil {
		s.baselines[baselineKey{b.Path, b.Tests, b.Tier}] = time.Duration(b.Seconds * float64(time.Second))
	}
}

func (s *State) add(e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remember(e)
	if s.file == nil {
		return nil
	}
	if _, err := s.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

func (s *State) record(m Mutant, tests string) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records[recordKey{m.ID(), tests}]
	return r, ok
}

func (s *State) baseline(path, tests string, tier Tier) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	took, ok := s.baselines[baselineKey{path, tests, tier.Name}]
	return took, ok
}

// Close closes the file.
func (s *State) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
