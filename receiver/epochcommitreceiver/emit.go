// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

const (
	// perBatch is how many changes are handed on at once.
	perBatch = 1000
	// witness is what an epoch was read from.
	witness = "the domain's own commit record"
)

// tick emits what has changed, or all when it is time.
func (c *carrier) tick(now time.Time) {
	c.board.Forget(now)
	all := now.Sub(c.told) >= c.cfg.Heartbeat
	if c.emit(c.ctx, all, now) && all {
		c.told = now
	}
}

// emit delivers what was refused before, and then what has changed since. While the next component takes
// nothing, changes stay with the board, which has the last state delivered of each domain. At the end, and where they are
// refused for good, they are dropped.
func (c *carrier) emit(ctx context.Context, all bool, now time.Time) bool {
	return c.flush(ctx, now) && c.board.Changes(all, func(of []bilateral.Change) bool {
		c.pending = of
		return c.flush(ctx, now)
	})
}

// keeps reports whether changes that were refused are delivered again.
func (c *carrier) keeps(err error) bool { return !c.last && !deliver.IsPermanent(err) }

func (c *carrier) flush(ctx context.Context, now time.Time) bool {
	for len(c.pending) > 0 {
		n := min(len(c.pending), perBatch)
		if c.next.Once(ctx, c.batch(c.pending[:n], now)).Kept {
			return false
		}
		c.pending = c.pending[n:]
	}
	c.pending = nil
	return true
}

// batch is changes of one job as log events.
func (c *carrier) batch(changes []bilateral.Change, now time.Time) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	epochmap.JobToResource(changes[0].Job, "", rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	for i := range changes {
		for _, o := range c.observations(&changes[i], now) {
			epochmap.ObservationToLog(&o, sl.LogRecords().AppendEmpty())
		}
	}
	return ld
}

// observations are of a rank's part, which is whole on its disk as soon as the rank tells of it, and of
// its commit.
func (c *carrier) observations(of *bilateral.Change, now time.Time) [2]model.EpochObservation {
	o := model.EpochObservation{
		Time: now.UnixNano(), JobID: of.Job, Generation: fmt.Sprintf("%d ranks", of.Domains), Save: of.Epoch,
		Domain: model.Domain{Kind: model.DomainCommit, ID: of.Domain}, Of: int64(of.Domains),
		State: of.State, Witness: witness, Confidence: 1, Observer: c.observer, Life: c.life, Revision: of.Revision,
	}
	if of.Held && (of.State == model.DomainCommitted || of.State == model.DomainAbsent) {
		o.Epoch = model.Some(of.Epoch)
	}
	part := o
	part.Domain.Kind = model.DomainPart
	if of.State == model.DomainTentative || of.State == model.DomainReflecting {
		part.State, part.Epoch = model.DomainCommitted, model.Some(of.Epoch)
	}
	return [2]model.EpochObservation{part, o}
}
