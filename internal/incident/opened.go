// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Opened are the findings that were new lately, as a state beside the engine's own. It is small, so that it
// can be kept before a finding is reported as new, which is then not reported as new after a restart.
type Opened struct{ e *Engine }

const (
	// openedFor is for how long a finding is new: a component keeps the engine's state much more often.
	openedFor = 10 * time.Minute
	// maxOpened and maxOpenedBytes bound them; those that were new first leave first.
	maxOpened      = 1024
	maxOpenedBytes = 1 << 20
)

// fresh is a finding as it was when it was new.
type fresh struct {
	finding model.Finding
	at      time.Time
}

func newOpened() *bounded.Map[finding.Place, fresh] {
	return bounded.NewMap(bounded.MapConfig[finding.Place, fresh]{
		Entries: maxOpened, Bytes: maxOpenedBytes, Size: func(_ finding.Place, f fresh) int { return f.finding.Bytes() },
	})
}

// Opened returns the findings that were new lately.
func (e *Engine) Opened() *Opened { return &Opened{e} }

// Snapshot returns them.
func (o *Opened) Snapshot() ([]byte, error) {
	var open []model.Finding
	for _, f := range o.e.opened.All() {
		open = append(open, f.finding)
	}
	return finding.Encode(open)
}

// Restore takes what Snapshot returned, after the engine was restored: those that it does not know are open, and are
// reported as updates.
func (o *Opened) Restore(data []byte, now time.Time) error {
	e := o.e
	open, err := finding.Decode(data)
	if err != nil {
		return err
	}
	pending := e.book.Changes()
	for i := range open {
		f := &open[i]
		if f.ID == "" || e.book.Knows(placeOf(f), f.ID) {
			continue
		}
		e.Add(*f, now)
		e.stats.Received--
		if n := e.book.At(placeOf(f)); n != nil {
			e.book.Repeat(n)
		}
		pending = append(pending, e.book.Changes()...)
	}
	for _, c := range pending {
		e.book.Report(c.Episode, c.New, c.Closed)
	}
	return nil
}
