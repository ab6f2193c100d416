// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// keptVersion is the version of the form in which a book survives a restart; docs/format/kept-findings.md
// specifies it.
const keptVersion = 1

type kept struct {
	Version int           `json:"version"`
	Open    []keptEpisode `json:"open,omitempty"`
	Ended   []ended       `json:"ended,omitempty"`
}

type keptEpisode struct {
	Place   Place       `json:"place"`
	Finding keptFinding `json:"finding"`
}

// Edits counts the changes of what Snapshot returns: while it stays the same, so does the snapshot but
// for the times of the findings.
func (b *Book[D]) Edits() int64 { return b.edits }

// Snapshot returns, as JSON, the open findings and the ids that are remembered.
func (b *Book[D]) Snapshot() ([]byte, error) {
	k := kept{Version: keptVersion, Ended: b.past.list()}
	for _, e := range b.Episodes() {
		k.Open = append(k.Open, keptEpisode{e.Place, keep(&e.Finding)})
	}
	data, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("write findings: %w", err)
	}
	return data, nil
}

// Restore takes what Snapshot returned, before anything is found. Each finding is open as it was, and
// waits to be confirmed. Restore takes nothing of a snapshot that is not sound.
func (b *Book[D]) Restore(data []byte, now time.Time) error {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("read findings: %w", err)
	}
	if err := k.check(b.cfg.MaxOpen); err != nil {
		return fmt.Errorf("read findings: %w", err)
	}
	for _, of := range k.Ended {
		b.past.add(of.ID, of.Revision)
	}
	for i := range k.Open {
		e := &Episode[D]{
			Place: k.Open[i].Place, Finding: k.Open[i].Finding.finding(), Opened: now, Confirmed: now, Revised: now, Restored: true,
		}
		if b.open[e.Place] != nil || !b.fits(e) {
			b.past.add(e.Finding.ID, e.Finding.Revision)
			b.stats.Dropped++
			continue
		}
		b.enter(e)
		b.stats.Restored++
	}
	return nil
}

func (k *kept) check(maxOpen int) error {
	switch {
	case k.Version != keptVersion:
		return fmt.Errorf("check version: got %d; want %d", k.Version, keptVersion)
	case len(k.Ended) > maxPast:
		return fmt.Errorf("check ended findings: got %d; want at most %d", len(k.Ended), maxPast)
	}
	for i := range k.Ended {
		if e := &k.Ended[i]; e.ID == "" || e.Revision < 1 || len(e.ID) > bounded.MaxName {
			return fmt.Errorf("check ended finding %d: got id %.40q, revision %d; want an id and a revision of 1 or more", i, e.ID, e.Revision)
		}
	}
	for i := range k.Open {
		f := &k.Open[i].Finding
		if f.ID == "" || f.Kind == "" || f.Revision < 1 || f.Status != model.StatusOpen && f.Status != model.StatusUpdated {
			return fmt.Errorf("check open finding %d: got id %.40q, kind %.40q, revision %d, status %.40q; want an id, a kind, a revision of 1 or more, and open or updated",
				i, f.ID, f.Kind, f.Revision, f.Status)
		}
	}
	return nil
}
