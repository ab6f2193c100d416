// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// dcpState is what the items of a save of DCP are of, by their names.
type dcpState struct {
	any       bool
	optimizer bool
	model     bool   // a key is one that applications give to a model
	other     string // the first key that is not known
	trainer   string // the key of a trainer, which may hold anything
}

// Parts of names of items, without the numbers at their ends.
var (
	// optimizerParts are of states of optimizers, wherever they stand.
	optimizerParts = []string{
		"optimizer", "optimizers", "optim", "optims", "opt_state", "param_groups", "exp_avg", "exp_avg_sq", "max_exp_avg_sq",
		"momentum_buffer", "fp32_param", "master_param", "master_params",
	}
	// optimizerWords are words of keys, such as "generator_optimizer". Of deeper parts a model has some, too.
	optimizerWords = []string{"optimizer", "optimizers", "optim", "optims", "adam", "adamw"}
	wrapperKeys    = []string{"app", "app_state", "state", "checkpoint"}
	modelKeys      = []string{
		"model", "models", "module", "modules", "state_dict", "model_state_dict", "model_state", "network", "net", "ema", "ema_model", "model_ema",
		"weights", "params",
	}
	jobKeys = []string{
		"train_state", "common_state", "epoch", "args", "config", "hparams", "version", "checkpoint_version", "metadata", "tokens", "samples",
		"seed", "scaler", "grad_scaler", "loss",
	}
)

// note notes what an item is of.
func (d *dcpState) note(fqn string) {
	d.any = true
	if d.optimizer {
		return // and of a job
	}
	parts := strings.FieldsFunc(strings.ToLower(fqn), func(r rune) bool { return r == '.' || r == '/' })
	for i, part := range parts {
		parts[i] = cmp.Or(strings.TrimRight(part, "_0123456789"), part)
	}
	if len(parts) > 1 && slices.Contains(wrapperKeys, parts[0]) {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return
	}
	key := parts[0]
	isModel := slices.Contains(modelKeys, key)
	d.optimizer = dcpKind(fqn) == model.DomainOptimizer || slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(optimizerParts, p) }) ||
		!isModel && (key == "momentum" || slices.ContainsFunc(parts[:min(len(parts), 2)], hasOptimizerWord))
	switch {
	case isModel:
		d.model = true
	case strings.HasPrefix(key, "trainer"):
		d.trainer = key
	case dcpKind(fqn) == model.DomainModel && !isStep(fqn) && !slices.Contains(jobKeys, key):
		d.other = cmp.Or(d.other, key)
	}
}

func hasOptimizerWord(part string) bool {
	return slices.ContainsFunc(strings.Split(part, "_"), func(w string) bool { return slices.Contains(optimizerWords, w) })
}

// unknown is a key of which is not known what lies under it, "" where there is none. Without a key of a model the
// items are the parameters of one.
func (d *dcpState) unknown() string {
	if d.model {
		return cmp.Or(d.trainer, d.other)
	}
	return d.trainer
}

// readWholeDCP reads a save of DCP that has the optimizer, too, if anything of the save around it has one.
func readWholeDCP(b *builder, f *folder) {
	b.readDCP(f)
	noteWeightsOfDCP(b, noOptimizerItem)
}

// noteWeightsOfDCP notes that the items of a save of DCP are of a model alone, or that nothing tells.
func noteWeightsOfDCP(b *builder, why string) {
	if !b.items.any || b.items.optimizer || b.save.has(model.DomainOptimizer) || b.initial {
		return
	}
	if key := b.items.unknown(); key != "" {
		b.save.Unproven = cmp.Or(b.save.Unproven, "no item in .metadata is called as those of an optimizer are, and nothing says what lies under "+quote(key)+
			": a resume may lack its optimizer; save it under \"optimizer\" or \"optim\"")
		return
	}
	b.save.WeightsOnly = cmp.Or(b.save.WeightsOnly, why)
}
