// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"cmp"
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
	Ended   []keptEnd     `json:"ended,omitempty"`
	// Closed are those that this snapshot is the first to know as closed: the process may have been
	// killed before it sent them.
	Closed []keptEpisode `json:"closed,omitempty"`
}

// maxFresh bounds the findings that a snapshot has as Closed.
const maxFresh = 1024

type keptEnd struct {
	Job      string `json:"job,omitempty"`
	ID       string `json:"id"`
	Revision int64  `json:"revision"`
	// Whole is there where a book keeps ended findings whole.
	Whole *keptEpisode `json:"whole,omitempty"`
}

type keptEpisode struct {
	Place   Place       `json:"place"`
	Finding keptFinding `json:"finding"`
	// Opened is Unix ns by the clock of the book's user.
	Opened   int64 `json:"opened"`
	Received int64 `json:"received,omitempty"`
}

func keptOf[D any](e *Episode[D]) keptEpisode {
	return keptEpisode{e.Place, keep(&e.Finding), e.Opened.UnixNano(), e.Received}
}

func episodeOf[D any](k *keptEpisode, now time.Time) *Episode[D] {
	return &Episode[D]{
		Place: k.Place, Finding: k.Finding.finding(), Opened: time.Unix(0, k.Opened), Confirmed: now, Revised: now, Received: k.Received,
		Restored: true,
	}
}

// Edits counts the changes of what Snapshot returns: while it stays the same, so does the snapshot but
// for the times of the findings.
func (b *Book[D]) Edits() int64 { return b.edits }

// Snapshot returns, as JSON, the open findings and the ids that are remembered. A component saves it
// before it sends what Take returns.
func (b *Book[D]) Snapshot() ([]byte, error) {
	k := kept{Version: keptVersion, Closed: b.fresh}
	b.fresh = nil
	for e := range b.Ended() {
		end := keptEnd{Job: e.Place.Job, ID: e.Finding.ID, Revision: e.Finding.Revision}
		if b.cfg.KeepWhole {
			whole := keptOf(e)
			end.Whole = &whole
		}
		k.Ended = append(k.Ended, end)
	}
	for _, e := range b.Episodes() {
		k.Open = append(k.Open, keptOf(e))
	}
	data, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("write findings: %w", err)
	}
	return data, nil
}

// Restore takes what Snapshot returned, before anything is found. Each finding is open as it was, and
// waits to be confirmed; those that may have been closed without being sent are reported as closed once
// more. Restore takes nothing of a snapshot that is not sound.
func (b *Book[D]) Restore(data []byte, now time.Time) error {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("read findings: %w", err)
	}
	if err := k.check(); err != nil {
		return fmt.Errorf("read findings: %w", err)
	}
	for _, of := range k.Ended {
		e := &Episode[D]{Place: Place{Job: of.Job}}
		if of.Whole != nil && b.cfg.KeepWhole {
			e = episodeOf[D](of.Whole, now)
		}
		e.Place.Job, e.Finding.ID, e.Finding.Revision = of.Job, of.ID, of.Revision
		e.Finding.Status = cmp.Or(e.Finding.Status, model.StatusClosed)
		b.ended.add(e)
	}
	for i := range k.Closed {
		e := episodeOf[D](&k.Closed[i], now)
		b.ended.add(e)
		b.Report(e, false, true)
	}
	for i := range k.Open {
		e := episodeOf[D](&k.Open[i], now)
		if b.open[e.Place] != nil || !b.fits(e) {
			b.ended.add(e)
			b.stats.Dropped++
			continue
		}
		b.enter(e)
		b.stats.Restored++
	}
	return nil
}

func (k *kept) check() error {
	if k.Version != keptVersion {
		return fmt.Errorf("check version: got %d; want %d", k.Version, keptVersion)
	}
	for i := range k.Ended {
		if e := &k.Ended[i]; e.ID == "" || e.Revision < 1 || len(e.ID) > bounded.MaxName {
			return fmt.Errorf("check ended finding %d: got id %.40q, revision %d; want an id and a revision of 1 or more", i, e.ID, e.Revision)
		}
	}
	for i := range k.Closed {
		f := &k.Closed[i].Finding
		if f.ID == "" || len(f.ID) > bounded.MaxName || f.Revision < 1 || f.Status != model.StatusClosed {
			return fmt.Errorf("check closed finding %d: got id %.40q, revision %d, status %.40q; want an id, a revision of 1 or more, and closed", i, f.ID, f.Revision, f.Status)
		}
	}
	for i := range k.Open {
		f := &k.Open[i].Finding
		if f.ID == "" || len(f.ID) > bounded.MaxName || f.Revision < 1 || f.Status != model.StatusOpen && f.Status != model.StatusUpdated {
			return fmt.Errorf("check open finding %d: got id %.40q, revision %d, status %.40q; want an id, a revision of 1 or more, and open or updated",
				i, f.ID, f.Revision, f.Status)
		}
	}
	return nil
}
