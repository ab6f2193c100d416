// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Names that save_state numbers without a gap. Index 0 has no number, but of custom states and of folders of
// FSDP. Samplers are no part of it: a data loader without a state of its own leaves a gap.
var (
	accelerateIndexed = regexp.MustCompile(`^(model|pytorch_model|pytorch_model_fsdp|optimizer|scheduler)(?:_(\d+))?(\.\w+)?(?:\.index\.json)?$`)
	accelerateStates  = regexp.MustCompile(`^(custom_checkpoint_)(\d+)(\.pkl)$`)
)

// emaSuffix ends the folder of the average of a model, which the hooks of scripts save beside the model.
const emaSuffix = "_ema"

// holes looks for models, optimizers, schedulers and custom states that are missing before one of a higher
// number, and for models of which the average alone is there.
func (a *accelerated) holes() {
	there := map[string]map[int64]bool{} // by name, with * for the number
	for _, e := range a.f.entries {
		name, n, ok := accelerateNumber(e.Name(), a.isFolder(a.f, e))
		if !ok {
			continue
		}
		if there[name] == nil {
			there[name] = map[int64]bool{}
		}
		there[name][n] = true
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		have := there[name]
		last := slices.Max(slices.Collect(maps.Keys(have)))
		for n := range min(last, int64(a.opt.Limits.Domains)) {
			if !have[n] {
				a.hole(accelerateNamed(name, n), "got no such file; want it before "+accelerateNamed(name, last)+": accelerate numbers them without a gap")
			}
		}
	}
	if n, ok := a.fsdpShards(a.f); ok && fsdpModel(a.f) == "" && !a.f.has(oldFSDPFolder+n) {
		a.hole(fsdpFolder+n, "got no such folder; want it beside optimizer_"+n+": a resume under FSDP loads both")
	}
	for _, e := range a.f.entries {
		of, ema := strings.CutSuffix(e.Name(), emaSuffix)
		if ema && of != "" && a.isFolder(a.f, e) && !a.f.has(of) {
			a.hole(of, "got no such folder; want the model beside its average "+e.Name())
		}
	}
}

// hole notes that a part is missing.
func (a *accelerated) hole(name, what string) {
	kind, known := accelerateKind(name)
	if !known {
		kind = model.DomainModel
	}
	a.missing(a.domain(kind, name, ""), CheckShards, a.f.join(name), "%s", what)
}

// accelerateNumber returns the number of a name, and the name with * in place of the number.
func accelerateNumber(name string, folder bool) (string, int64, bool) {
	if folder && accelerateFSDP.MatchString(name) {
		i := strings.LastIndexByte(name, '_') + 1
		n, ok := number(name[i:])
		return name[:i] + "*", n, ok
	}
	if at := accelerateStates.FindStringSubmatch(name); at != nil {
		n, ok := number(at[2])
		return at[1] + "*" + at[3], n, ok
	}
	at := accelerateIndexed.FindStringSubmatch(name)
	if _, known := accelerateKind(name); at == nil || !known || folder != (at[3] == "") {
		return "", 0, false
	}
	n := int64(0)
	if at[2] != "" {
		var ok bool
		if n, ok = number(at[2]); !ok {
			return "", 0, false
		}
	}
	return at[1] + "[_*]" + at[3], n, true
}

// accelerateNamed returns the name of a number; it undoes accelerateNumber.
func accelerateNamed(name string, n int64) string {
	begin, end, optional := strings.Cut(name, "[_*]")
	switch {
	case optional && n == 0:
		return begin + end
	case optional:
		return begin + "_" + quantity(n) + end
	}
	return strings.Replace(name, "*", quantity(n), 1)
}
