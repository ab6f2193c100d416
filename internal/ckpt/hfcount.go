// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// hfJob is what a save of the Trainer says of how its job counts.
type hfJob struct {
	epochs  float64        // passes over the data
	every   int64          // steps between saves; 0 where nothing says
	batches int64          // of each step of the optimizer; 0 where nothing says
	evals   map[int64]bool // the steps at which it evaluated
	fp16    bool           // steps may be skipped, of which older versions save no scaler
}

// readState takes from trainer_state.json what another type may stand in for without harm.
func (j *hfJob) readState(epoch, every any) {
	j.epochs, _ = epoch.(float64)
	if n, ok := every.(float64); ok && n >= 1 && n < math.MaxInt32 {
		j.every = int64(n)
	}
}

func (j *hfJob) readArguments(z *torch) {
	j.batches, _ = z.number("gradient_accumulation_steps")
	v, ok := z.get("fp16")
	j.fp16 = ok && v.Int() == 1
}

// epochwise reports whether a scheduler that lags may count epochs: they are few, and no older save of
// the job counted as many steps.
func (j *hfJob) epochwise(c *counter) bool {
	const part = 4
	few := float64(c.n) <= math.Ceil(j.epochs)
	return few || c.n < c.step/part && (j.every == 0 || c.n%j.every != 0)
}

// accumulates reports whether the step of the save may count batches, of which one step of the optimizer
// takes several.
func (j *hfJob) accumulates(c *counter) bool {
	const part = 20 // an epoch may end with fewer batches
	if j.batches == 0 {
		return j.every == 0 || c.n%j.every != 0
	}
	off := c.n*j.batches - c.step
	return j.batches > 1 && max(off, -off) <= max(j.batches, c.step/part)
}

// doubt judges a counter that no other save has, which lags by more than a part of the way to the save
// before. It returns what it should count instead; "" where nothing is wrong with it.
func (j *hfJob) doubt(c *counter, beside []counter) string {
	const part = 4
	way := c.step
	if j.every > 0 {
		way = min(way, j.every)
	}
	if c.skips || c.want-c.n <= way/part {
		return ""
	}
	for _, o := range beside {
		scheduler := c.domain.Kind == model.DomainScheduler
		switch {
		case o.domain.Kind == c.domain.Kind:
		case scheduler && o.exact() && !j.epochwise(c):
			return fmt.Sprintf("%d, as %s counts every step", c.want, o.of)
		case o.n == c.n && !o.shard && !j.fp16 && !j.accumulates(c):
			return strconv.FormatInt(c.want, 10)
		}
	}
	return ""
}

// settleSkips takes back that steps may have been skipped. The Trainer steps the scheduler only where the
// optimizer made its step, so that one of both that counts every step disproves it for the other.
func (h *hf) settleSkips() {
	cs := h.save.counters
	for i := range cs {
		c := &cs[i]
		c.skips = c.skips && !slices.ContainsFunc(cs, func(o counter) bool {
			return o.domain.Kind != c.domain.Kind && o.n == o.step && (c.domain.Kind != model.DomainOptimizer || c.want-c.n > h.unseen)
		})
	}
}

func (h *hf) optimizerSteps(z *torch) (int64, bool) {
	h.noteFused(z)
	z.wantOptimizer(z.root, true)
	if h.step.V > 0 && !h.job.fp16 && !h.f.has("scaler.pt") && z.lacksAverages(z.root) {
		z.wantAverages(steps(h.step.V))
	}
	return z.innerStep()
}

// noteFused notes that a fused optimizer may have skipped steps that the Trainer did not see: it leaves them
// out within its own step. How many, the scale of the scaler bounds.
func (h *hf) noteFused(z *torch) {
	groups, _ := z.get("param_groups")
	h.fused = h.fused || groups.Kind() == pickle.List && slices.ContainsFunc(z.m.Items(groups), func(g pickle.Value) bool {
		v, ok := z.m.Get(g, "fused")
		return ok && v.Int() == 1
	})
}

// noteScale notes how many steps the scaler, which counts none itself, skipped at most: each halves its scale, which begins with 2^16 and
// doubles after some thousand steps.
func (h *hf) noteScale(z *torch) (count int64, counts bool) {
	v, ok := z.get("scale")
	if !h.fused || !ok {
		return 0, false
	}
	const begin, interval = 16, 2000
	scale, whole := z.Number(z.m, v)
	if !whole || scale < 1 {
		h.unseen = math.MaxInt64
		return 0, false
	}
	every, ok := z.number("growth_interval")
	if !ok || every < 1 {
		every = interval
	}
	h.unseen = max(0, begin-int64(math.Log2(float64(scale)))) + h.step.V/every
	return 0, false
}
