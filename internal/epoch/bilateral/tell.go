// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Limits of what one domain tells.
const (
	// MaxName is in bytes. Names of domains are such as "rank 3 of pipeline 7".
	MaxName = 128
	// MaxSlots are the saves that a domain holds side by side: one that is committed, and those
	// since that are not. Who has seven of these has another problem than the eighth.
	MaxSlots = 8
	// MaxDomains are those of one job: its ranks, with room for four times the largest known.
	MaxDomains = 1 << 17

	maxToken = 64 // bytes of a random token: 128 bits in hexadecimal are 32
)

// State is how far a domain is with a save.
type State uint8

// States, each of which implies those before.
const (
	Tentative  State = 1 + iota // its part is on its disk
	Reflecting                  // it knows that all domains are tentative at least
	Committed                   // it knows that all domains are reflecting at least
)

var states = [...]model.DomainState{Tentative: model.DomainTentative, Reflecting: model.DomainReflecting, Committed: model.DomainCommitted}

// Model is the state in the words of observations.
func (s State) Model() model.DomainState { return states[s] }

// ParseState returns the state of a name.
func ParseState(name string) (State, error) {
	for s := Tentative; s <= Committed; s++ {
		if string(states[s]) == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("parse state: got %.20q; want tentative, reflecting or committed", name)
}

// Attempt is one attempt at the save of an epoch. Session tells attempts at one epoch apart: it is of
// the processes that made it.
type Attempt struct {
	Epoch   int64
	Session string
}

func (a Attempt) compare(o Attempt) int {
	return cmp.Or(cmp.Compare(a.Epoch, o.Epoch), cmp.Compare(a.Session, o.Session))
}

// Slot is a save of which a domain holds its part.
type Slot struct {
	Attempt

	State State
}

// Tell is all that a domain has to say.
type Tell struct {
	Job, Domain string
	Domains     int // that the job has, this one included
	// Life is a random token of the domain's process, Sequence counts what the life tells.
	Life     string
	Sequence int64
	// Session is the one that the domain was told of and takes part in; empty: of none yet.
	Session string
	Slots   []Slot
	// Peer is the address that it came from; empty: not known.
	Peer string
}

// Check reports the first field that is out of range.
func (t *Tell) Check() error {
	switch {
	case !name(t.Job):
		return fmt.Errorf("check job: got %.40q; want 1 to %d bytes of text", t.Job, MaxName)
	case !name(t.Domain):
		return fmt.Errorf("check domain: got %.40q; want 1 to %d bytes of text", t.Domain, MaxName)
	case t.Domains < 1 || t.Domains > MaxDomains:
		return fmt.Errorf("check domains: got %d; want 1 to %d", t.Domains, MaxDomains)
	case !token(t.Life):
		return fmt.Errorf("check life: got %.40q; want 1 to %d hexadecimal digits", t.Life, maxToken)
	case t.Sequence < 1:
		return fmt.Errorf("check sequence: got %d; want 1 or more", t.Sequence)
	case t.Session != "" && !token(t.Session):
		return fmt.Errorf("check session: got %.40q; want at most %d hexadecimal digits", t.Session, maxToken)
	case len(t.Slots) > MaxSlots:
		return fmt.Errorf("check slots: got %d; want at most %d", len(t.Slots), MaxSlots)
	}
	for i := range t.Slots {
		if err := t.checkSlot(i); err != nil {
			return fmt.Errorf("check slots: %d: %w", i, err)
		}
	}
	return nil
}

func (t *Tell) checkSlot(i int) error {
	s := &t.Slots[i]
	switch {
	case s.Epoch < 0:
		return fmt.Errorf("got epoch %d; want 0 or more", s.Epoch)
	case i > 0 && s.Epoch <= t.Slots[i-1].Epoch:
		return fmt.Errorf("got epoch %d after %d; want them ascending", s.Epoch, t.Slots[i-1].Epoch)
	case !token(s.Session):
		return fmt.Errorf("got attempt %.40q; want 1 to %d hexadecimal digits", s.Session, maxToken)
	case s.State < Tentative || s.State > Committed:
		return fmt.Errorf("got state %d; want %d to %d", s.State, Tentative, Committed)
	}
	return nil
}

func name(s string) bool {
	return s != "" && len(s) <= MaxName && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}

func token(s string) bool {
	return s != "" && len(s) <= maxToken && strings.Trim(s, "0123456789abcdef") == ""
}
