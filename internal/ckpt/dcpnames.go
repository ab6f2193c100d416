// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Words of names of items. Names are the application's, so that one tells something by its place alone: a model
// may have a part that is called by any of them.
var (
	optimizerNames = []string{"optimizer", "optimizers", "optim", "optims", "opt_state"}
	optimizerWords = []string{"optimizer", "optimizers", "optim", "optims", "adam", "adamw"} // of keys such as "generator_optimizer"
	optimizerForms = []string{"state", "param_groups"}                                       // what lies below an optimizer
	// parameterStates are what an optimizer keeps for one parameter, whose name stands before it.
	parameterStates = []string{
		"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "exp_avg_diff", "momentum", "momentum_buffer", "square_avg", "acc_delta",
		"sum", "fp32_param", "master_param", "master_params",
	}
	wrapperKeys = []string{"app", "app_state", "state", "checkpoint", "chained"}
	modelKeys   = []string{
		"model", "models", "module", "modules", "state_dict", "model_state_dict", "model_state", "network", "net", "ema", "ema_model", "model_ema",
		"weights", "params",
	}
	jobKeys = []string{
		"train_state", "common_state", "epoch", "args", "config", "hparams", "version", "checkpoint_version", "metadata", "tokens", "samples",
		"seed", "scaler", "grad_scaler", "loss",
	}
)

// dcpNames are the names of the items of one .metadata, and what they tell of each other.
type dcpNames struct {
	titan   bool            // torchtitan wrote it, which keeps parameters without a key, and its optimizer under "optimizer"
	wrapper string          // the key that all names begin with, above that of a model; "" for none
	keyed   bool            // a key is one that applications give to a model: parameters have no other
	whole   map[string]bool // names of parameters
	params  map[string]bool // the same, with and without their first key
	covers  bool            // most parameters have state of an optimizer that is called by them
}

// namesOf looks at all names before any of them is judged.
func namesOf(items []dcpItem, titan bool) *dcpNames {
	n := &dcpNames{titan: titan, whole: map[string]bool{}, params: map[string]bool{}}
	n.wrapper = commonWrapper(items)
	for i := range items {
		n.keyed = n.keyed || slices.Contains(modelKeys, bareWord(n.parts(items[i].fqn)[0]))
	}
	covered := map[string]bool{}
	for i := range items {
		parts := n.parts(items[i].fqn)
		isModel := slices.Contains(modelKeys, bareWord(parts[0]))
		if n.keyed != isModel || slices.Contains(parameterStates, parts[len(parts)-1]) || !isModel && slices.Contains(jobKeys, bareWord(parts[0])) {
			continue
		}
		if isModel && len(parts) > 1 {
			parts = parts[1:]
		}
		n.whole[strings.Join(parts, ".")] = true
		n.params[strings.Join(parts, ".")] = true
		if !isModel && len(parts) > 1 {
			n.params[strings.Join(parts[1:], ".")] = true
		}
	}
	for i := range items {
		if param := n.covered(n.parts(items[i].fqn)); param != "" {
			covered[param] = true
		}
	}
	const most = 2
	n.covers = len(covered) > 0 && len(covered)*most >= len(n.whole)
	return n
}

// commonWrapper is the key that all names begin with, where that of a model stands below it.
func commonWrapper(items []dcpItem) string {
	common, wraps := "", false
	for i := range items {
		parts := partsOf(items[i].fqn)
		if len(parts) < 2 || common != "" && parts[0] != common || slices.Contains(modelKeys[:4], parts[0]) {
			return ""
		}
		common = parts[0]
		wraps = wraps || slices.Contains(modelKeys, bareWord(parts[1]))
	}
	if !wraps {
		return ""
	}
	return common
}

func partsOf(fqn string) []string {
	return strings.FieldsFunc(strings.ToLower(fqn), func(r rune) bool { return r == '.' || r == '/' })
}

// bareWord is a part of a name without the number at its end.
func bareWord(part string) string { return cmp.Or(strings.TrimRight(part, "_0123456789"), part) }

// parts are those of a name, without what applications and Megatron's chains of optimizers wrap all state in. There
// is one at least.
func (n *dcpNames) parts(fqn string) []string {
	parts := partsOf(fqn)
	if n.wrapper != "" && len(parts) > 1 && parts[0] == n.wrapper {
		parts = parts[1:]
	}
	if len(parts) > 1 && slices.Contains(wrapperKeys, bareWord(parts[0])) {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return []string{""}
	}
	return parts
}

// maxKeysBefore bounds the keys before the name of a parameter: a file may have a name of a million parts.
const maxKeysBefore = 32

// covered is the parameter that a name is the state of: K.PARAMETER.exp_avg, or beside the key of a model
// momentum.PARAMETER; "" where it is of none.
func (n *dcpNames) covered(parts []string) string {
	last := len(parts) - 1
	if slices.Contains(modelKeys, bareWord(parts[0])) || last == 0 {
		return ""
	}
	if slices.Contains(parameterStates, parts[last]) {
		name := strings.Join(parts[:last], ".")
		for _, key := range parts[:min(last, maxKeysBefore)] {
			if n.params[name] {
				return name
			}
			name = strings.TrimPrefix(name[len(key):], ".")
		}
	}
	if name := strings.Join(parts[1:], "."); n.keyed && slices.Contains(parameterStates, bareWord(parts[0])) && n.params[name] {
		return name
	}
	return ""
}

// isOptimizer reports whether an item is of an optimizer: its key is one's, or it is state of a parameter.
func (n *dcpNames) isOptimizer(fqn string) bool {
	parts := n.parts(fqn)
	key := bareWord(parts[0])
	if slices.Contains(modelKeys, key) {
		return false
	}
	shaped := func(rest []string) bool {
		return len(rest) > 0 && slices.Contains(optimizerForms, bareWord(rest[0])) || n.covered(parts) != "" || !n.titan && n.whole[strings.Join(rest, ".")]
	}
	switch {
	case isOptimizerName(key) && (key == optimizerNames[0] || n.keyed || !n.titan), slices.Contains(optimizerForms, key) && n.covers:
		return true
	case n.covers && n.covered(parts) != "", bareWord(parts[min(1, len(parts)-1)]) == "param_groups":
		return true
	case hasOptimizerWord(key, len(parts)) && (n.keyed || shaped(parts[1:])):
		return true
	}
	if len(parts) == 1 || dcpKind(parts[0]) != model.DomainModel {
		return false
	}
	second := bareWord(parts[1])
	return (isOptimizerName(second) || len(parts) > 2 && hasOptimizerWord(second, len(parts)-1)) && (n.keyed || slices.Contains(jobKeys, key) || shaped(parts[2:]))
}

// isOptimizerName reports whether a key is that of an optimizer, whatever lies below it.
func isOptimizerName(key string) bool {
	for _, end := range []string{"_dict", "_state", "_states"} {
		if name, ok := strings.CutSuffix(key, end); ok && !slices.Contains(optimizerNames, key) {
			key = name
		}
	}
	return slices.Contains(optimizerNames, key)
}

// hasOptimizerWord reports whether a key has the word in it. One with nothing below it, as "optimizer_steps", must
// end with it.
func hasOptimizerWord(key string, parts int) bool {
	words := strings.Split(key, "_")
	if parts == 1 {
		words = words[len(words)-1:]
	}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(optimizerWords, w) })
}

// kind is what an item is of.
func (n *dcpNames) kind(fqn string) model.DomainKind {
	if n.isOptimizer(fqn) {
		return model.DomainOptimizer
	}
	return dcpKind(fqn)
}

// isStep reports whether an item holds the step of the whole job: "step", "train_state.step", "iteration". Deeper
// ones, and those of an optimizer or scheduler, count something else.
func (n *dcpNames) isStep(fqn string) bool {
	parts := strings.FieldsFunc(fqn, func(r rune) bool { return r == '.' || r == '/' })
	if len(parts) == 0 || len(parts) > 2 || n.kind(fqn) != model.DomainModel {
		return false
	}
	switch parts[len(parts)-1] {
	case "step", "iteration", "global_step", "global_steps":
		return len(parts) == 1 || parts[0] != "model"
	}
	return false
}

// optimizerStep reports whether an item is what an optimizer counts for one parameter, and names the optimizer.
func (n *dcpNames) optimizerStep(fqn string) (of string, ok bool) {
	of, _, _ = strings.Cut(fqn, ".")
	return of, strings.HasSuffix(fqn, ".step") && n.isOptimizer(fqn)
}
