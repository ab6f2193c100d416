// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// scalerIterations is what the loss scaler of fp16 counts in a shard of ZeRO: every step, skipped ones too.
func (t *torch) scalerIterations() (int64, bool) {
	if _, ok := t.get("optimizer_state_dict", "loss_scaler", "cur_iter"); !ok {
		return 0, false
	}
	return t.number("optimizer_state_dict", "loss_scaler", "cur_iter")
}

// emptyState reports whether the optimizer in a shard of ZeRO has made no step: its state is there, and empty.
func (t *torch) emptyState() bool {
	for _, key := range []string{"base_optimizer_state", "optimizer_state_dict"} {
		v, ok := t.get("optimizer_state_dict", key, "state")
		if ok && v.Kind() == pickle.Dict && len(t.m.Items(v)) == 0 {
			return true
		}
	}
	return false
}

// compareScalers compares what the loss scalers of all shards count: they count on together, so that a shard
// that counts another number is of another save, by so many steps.
func (d *deepspeed) compareScalers() {
	if !d.save.Epoch.OK {
		return
	}
	of := func(s innerStep) bool { return s.scaled }
	first := slices.IndexFunc(d.inner, of)
	if first < 0 {
		return
	}
	want := d.inner[first].iterations
	if slices.ContainsFunc(d.inner, func(s innerStep) bool { return s.scaled && s.iterations == d.save.Epoch.V }) {
		want = d.save.Epoch.V
	}
	for _, s := range d.inner {
		if s.scaled && s.iterations != want && !d.save.Domains[s.domain].Own {
			d.hold(s.domain, d.save.Epoch.V+s.iterations-want, "the loss scaler's count", s.file)
		}
	}
}

// compareStates doubts shards without a state where others have one, and no loss scaler tells more.
func (d *deepspeed) compareStates() {
	other := slices.IndexFunc(d.inner, func(s innerStep) bool { return s.known && s.step > 0 })
	if other < 0 {
		d.averages()
		return
	}
	for _, s := range d.inner {
		if s.empty && !s.known && !s.scaled {
			d.doubt(s.domain, model.DomainTentative, Problem{CheckWitness, Suspect, s.file, fmt.Sprintf("got an optimizer without state; want one, as in %s: it is of another save", d.inner[other].file)})
		}
	}
}

// scalerCounter is the count of the loss scaler in a shard whose optimizer counts nothing yet.
func (d *deepspeed) scalerCounter(s innerStep) counter {
	of := &d.save.Domains[s.domain]
	return counter{domain: of.Domain, of: "loss scaler of " + of.ID, file: s.file, n: s.iterations, step: d.save.Epoch.V, want: d.save.Epoch.V, shard: true}
}

// averages doubts shards without averages after steps that were not skipped, unless these lie in files of their own.
func (d *deepspeed) averages() {
	made := d.save.Epoch.V - d.skipped
	if !d.known || !d.save.Epoch.OK || made < 1 || d.f.has(offloadedTensors) {
		return
	}
	for _, s := range d.inner {
		if s.bare {
			noAverages(d.builder, s.domain, s.file, steps(made))
		}
	}
}
