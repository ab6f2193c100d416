// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// An optimizer of Adam's kind keeps averages of each parameter from its first step on. One without them, in a save of
// a job that made steps, was saved where a rank does not have its state: a resume begins with new averages.

// lacksAverages reports whether an optimizer has groups of parameters with betas, and no state.
func (t *torch) lacksAverages(v pickle.Value) bool {
	state, ok := t.m.Get(v, "state")
	if !ok || state.Kind() != pickle.Dict || len(t.m.Items(state)) > 0 {
		return false
	}
	groups, _ := t.m.Get(v, "param_groups")
	return groups.Kind() == pickle.List && slices.ContainsFunc(t.m.Items(groups), func(g pickle.Value) bool {
		betas, ok := t.m.Get(g, "betas")
		params, _ := t.m.Get(g, "params")
		return ok && betas.Kind() != pickle.None && params.Kind() == pickle.List && len(t.m.Items(params)) > 0
	})
}

// wantAverages doubts a file whose optimizer lacks its averages after so many steps.
func (t *torch) wantAverages(after string) { noAverages(t.b, t.domain, t.name, after) }

func noAverages(b *builder, i int, name, after string) {
	b.torn(i, CheckShards, name, "%s", fmt.Sprintf("got an optimizer with betas and without state after %s; want the averages of each parameter: a resume would begin with new ones", after))
}

// wantMegatronAverages doubts the file of a rank of Megatron whose optimizer, alone or beside its loss scaler, lacks its
// averages.
func wantMegatronAverages(z *torch, iteration int64) {
	v, ok := z.get("optimizer")
	if !ok || iteration < 1 {
		return
	}
	if scaler, ok := z.m.Get(v, "grad_scaler"); ok && z.holds(scaler) {
		return
	}
	if within, ok := z.m.Get(v, "optimizer"); ok {
		v = within
	}
	if z.lacksAverages(v) {
		z.wantAverages(steps(iteration))
	}
}

// wantLightningAverages doubts a file of Lightning's whose optimizers all lack their averages. One of several may begin
// later than the others, and a loss scaler may skip the first steps.
func wantLightningAverages(z *torch, states pickle.Value) {
	n, ok := z.number("global_step")
	if !ok || n < 1 || states.Kind() != pickle.List {
		return
	}
	for _, key := range []string{"MixedPrecision", "MixedPrecisionPlugin", "native_amp_scaling_state", "amp_scaling_state"} {
		if _, scaled := z.get(key); scaled {
			return
		}
	}
	all := z.m.Items(states)
	if len(all) > 0 && !slices.ContainsFunc(all, func(v pickle.Value) bool { return !z.lacksAverages(v) }) {
		z.wantAverages(steps(n))
	}
}

func steps(n int64) string { return quantity(n) + " steps" }

// zeroLacksAverages reports whether the optimizer within a shard of ZeRO lacks its averages.
func (t *torch) zeroLacksAverages() bool {
	return slices.ContainsFunc([]string{"base_optimizer_state", "optimizer_state_dict"}, func(key string) bool {
		v, ok := t.get("optimizer_state_dict", key)
		return ok && t.lacksAverages(v)
	})
}
