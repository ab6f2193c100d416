// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// keptVersion is the version of the form in which a book survives a restart; docs/format/kept-findings.md
// specifies it.
const keptVersion = 1

type kept struct {
	Version int           `json:"version"`
	Open    []keptEpisode `json:"open,omitempty"`
	Ended   []keptEnd     `json:"ended,omitempty"`
	// Closed are those that were closed lately: the process may have been killed before it sent them.
	Closed []keptEpisode `json:"closed,omitempty"`
}

const (
	// freshFor is for how long a snapshot has a finding as Closed: within it, a component sends again
	// what its consumer refused.
	freshFor = 10 * time.Minute
	// maxFresh and maxFreshBytes bound those findings.
	maxFresh      = 1024
	maxFreshBytes = 1 << 20
	// maxWholeBytes bounds the ended findings that a snapshot has as a whole, the latest first.
	maxWholeBytes = 8 << 20
	// maxKeptBytes bounds a snapshot. What a component keeps under one key has 64 MiB at most.
	maxKeptBytes = 40 << 20
)

func newFresh[D any]() *bounded.Map[identity, *Episode[D]] {
	return bounded.NewMap(bounded.MapConfig[identity, *Episode[D]]{
		Entries: maxFresh, Bytes: maxFreshBytes, Size: func(_ identity, e *Episode[D]) int { return e.Finding.Bytes() },
	})
}

// remember notes that a finding was closed.
func (b *Book[D]) remember(e *Episode[D]) {
	k := identityOf(e)
	b.fresh.Delete(k) // it is the newest now
	b.fresh.Set(k, e)
}

// forgetFresh forgets the findings that were closed long enough ago.
func (b *Book[D]) forgetFresh() {
	b.fresh.DropOldest(func(_ identity, e *Episode[D]) bool { return b.clock.Sub(e.Revised) >= freshFor })
}

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
	Spanned  bool  `json:"spanned,omitempty"`
}

func keptOf[D any](e *Episode[D]) keptEpisode {
	return keptEpisode{e.Place, keep(&e.Finding), e.Opened.UnixNano(), e.Received, e.Spanned}
}

func episodeOf[D any](k *keptEpisode, now time.Time) *Episode[D] {
	return &Episode[D]{
		Place: k.Place, Finding: k.Finding.finding(), Opened: time.Unix(0, k.Opened), Confirmed: now, Revised: now, Received: k.Received,
		Spanned: k.Spanned, Restored: true,
	}
}

// Snapshot returns, as JSON, the open findings and the ids that are remembered. A component saves it
// before it sends what Take returns. Where that has more than 40 MiB, Snapshot returns a part and an error
// that says so.
func (b *Book[D]) Snapshot() ([]byte, error) {
	k := kept{Version: keptVersion}
	for _, e := range b.fresh.All() {
		k.Closed = append(k.Closed, keptOf(e))
	}
	whole := b.wholes()
	for e := range b.Ended() {
		end := keptEnd{Job: e.Place.Job, ID: e.Finding.ID, Revision: e.Finding.Revision}
		if whole[e] {
			kept := keptOf(e)
			end.Whole = &kept
		}
		k.Ended = append(k.Ended, end)
	}
	for _, e := range b.Episodes() {
		k.Open = append(k.Open, keptOf(e))
	}
	return k.encode(maxKeptBytes)
}

// encode returns the JSON. Where it is larger than the limit, the findings that have ended are left out, then the open
// ones that were not found for longest.
func (k *kept) encode(limit int) ([]byte, error) {
	open, ended := len(k.Open), len(k.Ended)
	for {
		data, err := json.Marshal(k)
		switch {
		case err != nil:
			return nil, fmt.Errorf("write findings: %w", err)
		case len(data) <= limit && len(k.Open) == open && len(k.Ended) == ended:
			return data, nil
		case len(data) <= limit || len(k.Ended)+len(k.Closed)+len(k.Open) == 0:
			return data, fmt.Errorf("write findings: got more than %d bytes: %d of %d open findings and %d of %d ended ones are kept",
				limit, len(k.Open), open, len(k.Ended), ended)
		case len(k.Ended) > 0 || len(k.Closed) > 0:
			k.Ended, k.Closed = nil, nil
		default:
			k.Open = k.Open[(len(k.Open)+3)/4:]
		}
	}
}

// wholes are the ended findings that a snapshot has as a whole.
func (b *Book[D]) wholes() map[*Episode[D]]bool {
	if !b.cfg.KeepWhole {
		return nil
	}
	bytes := 0
	for e := range b.Ended() {
		bytes += e.Finding.Bytes()
	}
	whole := map[*Episode[D]]bool{}
	for e := range b.Ended() {
		if bytes <= maxWholeBytes {
			whole[e] = true
		}
		bytes -= e.Finding.Bytes()
	}
	return whole
}

// Encode returns open findings as a snapshot that has nothing else.
func Encode(open []model.Finding) ([]byte, error) {
	k := kept{Version: keptVersion}
	for i := range open {
		k.Open = append(k.Open, keptEpisode{Place: Place{Job: open[i].JobID, Name: open[i].ID}, Finding: keep(&open[i])})
	}
	return k.encode(maxKeptBytes)
}

// Decode is the inverse of Encode.
func Decode(data []byte) (open []model.Finding, err error) {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	if err := k.check(); err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	for i := range k.Open {
		open = append(open, k.Open[i].Finding.finding())
	}
	return open, nil
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
	b.at(now)
	for i := range k.Ended {
		b.restoreEnded(&k.Ended[i], now)
	}
	open := map[identity]bool{}
	for i := range k.Open {
		open[identity{k.Open[i].Place.Job, k.Open[i].Finding.ID}] = true
	}
	for i := range k.Closed {
		e := episodeOf[D](&k.Closed[i], now)
		if known := b.ended.get(identityOf(e)); open[identityOf(e)] || known != nil && known.Finding.Revision > e.Finding.Revision {
			continue
		}
		b.ended.add(e)
		b.remember(e)
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

// restoreEnded remembers a finding after its end. A book that keeps findings whole has no use for others.
func (b *Book[D]) restoreEnded(of *keptEnd, now time.Time) {
	e := &Episode[D]{Place: Place{Job: of.Job}, Received: of.Revision}
	e.Finding.ID, e.Finding.Revision, e.Finding.Status = of.ID, of.Revision, model.StatusClosed
	if b.cfg.KeepWhole {
		if of.Whole == nil || of.Whole.Finding.ID != of.ID || of.Whole.Place.Job != of.Job {
			return
		}
		e = episodeOf[D](of.Whole, now)
	}
	b.ended.add(e)
}

func (k *kept) check() error {
	if k.Version != keptVersion {
		return fmt.Errorf("check version: got %d; want %d", k.Version, keptVersion)
	}
	for i := range k.Ended {
		if e := &k.Ended[i]; e.ID == "" || e.Revision < 1 || len(e.ID) > cut.MaxName {
			return fmt.Errorf("check ended finding %d: got id %.40q, revision %d; want an id and a revision of 1 or more", i, e.ID, e.Revision)
		}
	}
	for i := range k.Closed {
		f := &k.Closed[i].Finding
		if f.ID == "" || len(f.ID) > cut.MaxName || f.Revision < 1 || f.Status != model.StatusClosed {
			return fmt.Errorf("check closed finding %d: got id %.40q, revision %d, status %.40q; want an id, a revision of 1 or more, and closed", i, f.ID, f.Revision, f.Status)
		}
	}
	for i := range k.Open {
		f := &k.Open[i].Finding
		if f.ID == "" || len(f.ID) > cut.MaxName || f.Revision < 1 || f.Status != model.StatusOpen && f.Status != model.StatusUpdated {
			return fmt.Errorf("check open finding %d: got id %.40q, revision %d, status %.40q; want an id, a revision of 1 or more, and open or updated",
				i, f.ID, f.Revision, f.Status)
		}
	}
	return nil
}
