// SPDX-License-Identifier: Apache-2.0

package checkpointreceiver

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

// What came of a look.
const (
	lookTold       = "told"
	lookNothingNew = "nothing_new"
	lookUnreadable = "unreadable"
	lookRefused    = "refused"
)

// What was left out or held back.
const (
	faultUnnamed = "epoch_unknown"
	faultDomains = "domains"
	faultHeld    = "held_back"
	faultPartial = "not_whole"
)

const (
	// share is the greatest part of the time in which a folder is looked at.
	share = 0.1
	// perBatch is how many observations are handed on at once.
	perBatch = 1000
)

// look looks at a folder once, and tells what is new.
func (f *folder) look(now time.Time) {
	if now.Before(f.rest) || f.ctx.Err() != nil {
		return
	}
	began := time.Now()
	root, err := f.read()
	if f.ctx.Err() != nil {
		return
	}
	f.health.Set(f.cfg.Path, err)
	f.took = time.Since(began)
	f.rest = time.Now().Add(time.Duration(float64(f.took) * (1/share - 1)))
	outcome := lookUnreadable
	if err == nil {
		obs := f.watcher.Look(root, now)
		if outcome = f.tell(obs); outcome == lookTold && len(obs) == 0 {
			outcome = lookNothingNew
		}
		err = firstProblem(root)
	}
	f.telemetry.ReceiverCheckpointLooks.Add(f.ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	f.count()
	f.say(err)
}

// read reads the folder, and returns without it when that takes too long.
func (f *folder) read() (*ckpt.Root, error) {
	type result struct {
		root *ckpt.Root
		err  error
	}
	out, err := frwatch.Do(f.ctx, &f.disk, f.cfg.Path, f.looker.cfg.Timeout, func() result {
		dir, err := ckpt.OpenDir(f.cfg.Path)
		if err != nil {
			return result{nil, err}
		}
		defer func() { _ = dir.Close() }() // it was only read
		return result{ckpt.Read(f.ctx, dir, ckpt.Options{WorldSize: f.cfg.WorldSize}), nil}
	})
	if err != nil {
		return nil, err
	}
	return out.root, health.Explain(f.cfg.Path, out.err)
}

// firstProblem is what is wrong with the folder itself.
func firstProblem(root *ckpt.Root) error {
	for _, p := range root.Problems {
		if p.Severity == ckpt.Unreadable {
			return fmt.Errorf("read %s: %s", p.File, p.What)
		}
	}
	return nil
}

// tell hands observations on, and stops at the first batch that is refused: what follows is of
// no use without it.
func (f *folder) tell(obs []model.EpochObservation) string {
	for len(obs) > 0 {
		n := min(len(obs), perBatch)
		o := f.next.Once(f.ctx, f.batch(obs[:n]))
		switch {
		case o.Err == nil:
			obs = obs[n:]
			continue
		case o.Kept:
			f.watcher.Refused(obs)
		default: // the next heartbeat reports them, as all are
			f.next.Drop(f.ctx, len(obs)-n, o.Err)
		}
		return lookRefused
	}
	return lookTold
}

func (f *folder) batch(obs []model.EpochObservation) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	epochmap.JobToResource(f.cfg.JobID, f.cfg.JobName, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	sl.LogRecords().EnsureCapacity(len(obs))
	for i := range obs {
		epochmap.ObservationToLog(&obs[i], sl.LogRecords().AppendEmpty())
	}
	return ld
}

// count adds what the watcher has counted since.
func (f *folder) count() {
	now := f.watcher.Stats()
	for _, c := range []struct {
		reason       string
		now, counted int64
	}{
		{faultUnnamed, now.Unnamed, f.counted.Unnamed},
		{faultDomains, now.Dropped, f.counted.Dropped},
		{faultHeld, now.Held, f.counted.Held},
		{faultPartial, now.Partial, f.counted.Partial},
	} {
		if n := c.now - c.counted; n > 0 {
			f.telemetry.ReceiverCheckpointFaults.Add(f.ctx, n, metric.WithAttributes(attribute.String("reason", c.reason)))
		}
	}
	f.counted = now
}

// say tells the log where a folder can not be read, and where it can again.
func (f *folder) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == f.said {
		return
	}
	f.said = text
	if err != nil {
		f.log.Warn("Checkpoints can not be read", zap.String("path", f.cfg.Path), zap.Error(err))
		return
	}
	f.log.Info("Checkpoints can be read again", zap.String("path", f.cfg.Path))
}
