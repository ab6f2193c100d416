package epochcommitreceiver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

const (
	// perBatch is how many changes are handed on at once.
	perBatch = 1000
	// maxPending bounds the changes that wait to be told again, some 100 bytes each.
	maxPending = 1 << 18
	// witness is what an epoch was read from.
	witness = "the domain's own commit record"
)

// tick emits what has changed, or all when it is time.
func (c *carrier) tick(now time.Time) {
	c.board.Forget(now)
	all := now.Sub(c.told) >= c.cfg.Heartbeat
	if all {
		c.told = now
	}
	c.emit(c.ctx, c.board.Changes(all), now)
}

// emit hands changes on. What is refused is told again before what follows, since of two of one epoch
// the later holds.
func (c *carrier) emit(ctx context.Context, changes []bilateral.Change, now time.Time) {
	if room := maxPending - len(c.pending); len(changes) > room {
		c.telemetry.ReceiverEpochCommitObservationsDropped.Add(ctx, int64(2*(len(changes)-room)))
		changes = changes[:room]
	}
	c.pending = append(c.pending, changes...)
	slices.SortStableFunc(c.pending, func(a, b bilateral.Change) int { return cmp.Compare(a.Job, b.Job) })
	for len(c.pending) > 0 {
		n := min(len(c.pending), perBatch)
		if err := c.next.ConsumeLogs(ctx, c.batch(c.pending[:n], now)); err != nil {
			c.set.Logger.Warn("Observations of commits refused by the next component; they are told again", zap.Int("observations", 2*len(c.pending)), zap.Error(err))
			return
		}
		c.telemetry.ReceiverEpochCommitObservationsEmitted.Add(ctx, int64(2*n))
		c.pending = c.pending[n:]
	}
	c.pending = nil
}

// batch is changes as log events, under one resource for each job.
func (c *carrier) batch(changes []bilateral.Change, now time.Time) plog.Logs {
	ld := plog.NewLogs()
	var records plog.LogRecordSlice
	for i := range changes {
		if i == 0 || changes[i].Job != changes[i-1].Job {
			rl := ld.ResourceLogs().AppendEmpty()
			epochmap.JobToResource(changes[i].Job, "", rl.Resource())
			sl := rl.ScopeLogs().AppendEmpty()
			sl.Scope().SetName(otelmap.ScopeName)
			records = sl.LogRecords()
		}
		for _, o := range c.observations(&changes[i], now) {
			epochmap.ObservationToLog(&o, records.AppendEmpty())
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
