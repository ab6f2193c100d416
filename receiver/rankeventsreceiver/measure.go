// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// count adds what the ring came to since the last call.
func (t *tracked) count(rd *reader) {
	was, is := t.stats, t.rank.Stats()
	t.stats = is
	tel := rd.telemetry
	add(tel.ReceiverRankEventsRecordsRead.Add, rd, is.Records-was.Records)
	add(tel.ReceiverRankEventsRecordsLost.Add, rd, is.Lost-was.Lost)
	add(tel.ReceiverRankEventsRecordsBeforeAttach.Add, rd, is.BeforeAttach-was.BeforeAttach)
	add(tel.ReceiverRankEventsRecordsCorrupt.Add, rd, is.Corrupt-was.Corrupt)
	add(tel.ReceiverRankEventsRecordsSkipped.Add, rd, is.Skipped-was.Skipped)
	add(tel.ReceiverRankEventsOperationsFolded.Add, rd, is.Operations-was.Operations)
	add(tel.ReceiverRankEventsRecordsReread.Add, rd, is.Reread-was.Reread)
	add(tel.ReceiverRankEventsStepsClosed.Add, rd, is.StepsClosed-was.StepsClosed)
	add(tel.ReceiverRankEventsStepsMissing.Add, rd, is.StepsMissing-was.StepsMissing)
	add(tel.ReceiverRankEventsKernelsFolded.Add, rd, is.Kernels-was.Kernels)
	add(tel.ReceiverRankEventsKernelsOfCollectives.Add, rd, is.KernelsOfComm-was.KernelsOfComm)
	for _, o := range oddities(&was, &is) {
		if o.n > 0 {
			tel.ReceiverRankEventsOddities.Add(rd.ctx, o.n, reason(o.reason))
		}
	}
	t.tellOnce(rd, &was, &is)
	drops := t.ring.Drops()
	for i, n := range drops {
		if n > t.drops[i] {
			tel.ReceiverRankEventsProducerDrops.Add(rd.ctx, int64(n-t.drops[i]), reason(ring.DropName(i)))
			t.drops[i] = n
		}
	}
}

// tellOnce says what a ring has that its own process should put right.
func (t *tracked) tellOnce(rd *reader, was, is *rankevents.Stats) {
	for _, o := range []struct {
		was, is int64
		text    string
	}{
		{was.NoRank, is.NoRank, "Ring says neither its rank nor a communicator that does, or no time: its records are counted only"},
		{was.Corrupt, is.Corrupt, "Ring holds words that no producer writes"},
		{was.ClocksDisagree, is.ClocksDisagree, "Ring's clock readings contradict the host's, which are used"},
		{was.KeysOverflow, is.KeysOverflow, "Ring names more operations than are told apart"},
	} {
		if o.was == 0 && o.is > 0 {
			rd.log.Warn(o.text, zap.String("file", t.path))
		}
	}
}

type oddity struct {
	reason string
	n      int64
}

func oddities(was, is *rankevents.Stats) []oddity {
	return []oddity{
		{"without_step", is.WithoutStep - was.WithoutStep},
		{"late", is.Late - was.Late},
		{"step_evicted", is.StepsEvicted - was.StepsEvicted},
		{"step_expired", is.StepsExpired - was.StepsExpired},
		{"split_overflow", is.SplitOverflow - was.SplitOverflow},
		{"steps_renumbered", is.Renumbered - was.Renumbered},
		{"open_overflow", is.OpenOverflow - was.OpenOverflow},
		{"end_inferred", is.EndsInferred - was.EndsInferred},
		{"clock_reset", is.ClockResets - was.ClockResets},
		{"bad_time", is.BadTimes - was.BadTimes},
		{"no_rank", is.NoRank - was.NoRank},
		{"keys_overflow", is.KeysOverflow - was.KeysOverflow},
		{"clocks_disagree", is.ClocksDisagree - was.ClocksDisagree},
		{"steps_unfinished", is.StepsUnfinished - was.StepsUnfinished},
		{"not_mapped", is.NotMapped - was.NotMapped},
		{"kernel_without_clock", is.KernelsWithoutClock - was.KernelsWithoutClock},
		{"kernel_without_launch", is.KernelsWithoutLaunch - was.KernelsWithoutLaunch},
		{"kernel_clock_stepped", is.KernelClockSteps - was.KernelClockSteps},
		{"links_dropped", is.LinksDropped - was.LinksDropped},
		{"link_invalid", is.LinksInvalid - was.LinksInvalid},
		{"resume_invalid", is.ResumesInvalid - was.ResumesInvalid},
		{"fingerprint_invalid", is.FingerprintsInvalid - was.FingerprintsInvalid},
	}
}

// measure brings the gauges up to date.
func (rd *reader) measure() {
	open, history := int64(0), math.Inf(1)
	var records rankevents.Counted
	for _, t := range rd.rings {
		if t.done {
			continue
		}
		open++
		records.Add(t.rank.Counted())
		t.measure(time.Now())
		history = min(history, t.history)
	}
	rd.telemetry.ReceiverRankEventsRings.Record(rd.ctx, open)
	for r, n := range map[string]int64{"read": records.Read, "lost": records.Lost, "before_attach": records.Before, "skipped": records.Skipped} {
		rd.telemetry.ReceiverRankEventsRingRecords.Record(rd.ctx, n, reason(r))
	}
	for i, n := range [3]int64{rd.node.CommsOverflowed(), rd.node.LinksOverflowed(), rd.node.BootsOverflowed()} {
		if n > rd.overflow[i] {
			rd.telemetry.ReceiverRankEventsOddities.Add(rd.ctx, n-rd.overflow[i], reason([3]string{"comms_overflow", "links_overflow", "boots_overflow"}[i]))
			rd.overflow[i] = n
		}
	}
	if open > 0 && !math.IsInf(history, 1) {
		rd.telemetry.ReceiverRankEventsHistory.Record(rd.ctx, history)
	}
}

// measure estimates how far the shortest lane reaches back: its capacity over the
// rate at which it was written lately.
func (t *tracked) measure(now time.Time) {
	h := t.rank.Header()
	t.lanes = t.ring.Lanes(t.lanes[:0])
	t.history = math.Inf(1)
	for i := range t.lanes {
		if i < len(t.heads) {
			written := t.lanes[i].Head - t.heads[i]
			if written > 0 {
				t.history = min(t.history, float64(h.Capacity)*now.Sub(t.headsAt).Seconds()/float64(written))
			}
		}
	}
	t.heads = t.heads[:0]
	for i := range t.lanes {
		t.heads = append(t.heads, t.lanes[i].Head)
	}
	t.headsAt = now
}
