// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// next says what to do where a save is torn or mixed, or nothing names one.
func (r *Result) next() string {
	s := r.Judged
	switch {
	case r.OK() || r.Verdict == WeightsOnly:
		return ""
	case r.lost:
		return r.resumeFrom("resume")
	case r.takeIt != "":
		return r.takeIt
	case s == nil && r.Verdict == epoch.MixedEpoch:
		return r.resumeFrom("have all resume")
	case s == nil || r.Verdict != epoch.MixedEpoch && s.Judgement.MissingCount == 0:
		return ""
	case s.contents == epoch.Converged:
		return "only modification times say so: if the files were copied, run this again with --ignore-times; " + r.resumeFrom("else resume")
	case r.Verdict == epoch.Converging && !recoverable(s):
		return "if the job still writes it, wait and run this again; " + r.resumeFrom("else resume")
	}
	return r.resumeFrom("resume")
}

// resumeFrom names the save to resume from, and how its framework is made to.
func (r *Result) resumeFrom(resume string) string {
	i := slices.IndexFunc(r.Saves, func(s Save) bool { return r.Frontier.OK && s.Epoch == r.Frontier })
	if i < 0 {
		return "no other save is confirmed: restore one from elsewhere, or start a new job"
	}
	s := &r.Saves[i]
	text := fmt.Sprintf("%s from epoch %d", resume, s.Epoch.V)
	if how := s.load(); how != "" {
		text += " with " + how
	}
	return text
}

// load is how a framework is made to load a save; "" where it is not known.
func (s *Save) load() string {
	at := s.Paths[0]
	if len(s.weights.Full) > 0 {
		at = s.weights.Full[0]
	}
	return strings.NewReplacer("NAME", strconv.Quote(path.Base(at)), "PATH", strconv.Quote(at), "N", strconv.FormatInt(s.Epoch.V, 10)).Replace(loads[s.Format])
}

// haveTaken is how a save that is whole is taken in place of what a resume takes.
func (s *Save) haveTaken(taken Pointer) string {
	how := s.load()
	switch {
	case s.Epoch == taken.Epoch && path.Base(s.Paths[0]) != path.Base(taken.Path):
		return fmt.Sprintf("to resume from it, give %q the name %q", s.Paths[0], path.Base(taken.Path))
	case how == "" || !s.Epoch.OK:
		return "to resume from it, give it to the job's loader by its path, " + strconv.Quote(s.Paths[0])
	}
	return fmt.Sprintf("to resume from epoch %d, use %s", s.Epoch.V, how)
}

// loads is how each framework is made to load a save: N is its epoch, PATH where it lies, NAME the last part of that.
var loads = map[ckpt.Format]string{
	ckpt.FormatDCP:            "checkpoint_id=PATH",
	ckpt.FormatTorchtitan:     "--checkpoint.load_step N",
	ckpt.FormatMegatronDist:   "--ckpt-step N",
	ckpt.FormatMegatronLegacy: "--ckpt-step N",
	ckpt.FormatDeepSpeed:      "load_checkpoint(DIR, tag=NAME)",
	ckpt.FormatHFTrainer:      "resume_from_checkpoint=PATH",
	ckpt.FormatNeMo:           "resume_from_path=PATH",
	ckpt.FormatLightning:      "ckpt_path=PATH",
	ckpt.FormatOrbax:          "restore(N)",
	ckpt.FormatVerl:           "trainer.resume_mode=resume_path trainer.resume_from_path=PATH",
	ckpt.FormatAccelerate:     "load_state(PATH)",
	ckpt.FormatOLMoCore:       "load_path=PATH",
	ckpt.FormatNanotron:       "checkpoints.resume_checkpoint_path=PATH",
	ckpt.FormatLevanter:       "trainer.load_checkpoint_path=PATH",
	ckpt.FormatLitGPT:         "--resume PATH",
}
