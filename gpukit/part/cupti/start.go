// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

var errNoKernels = errors.New("read ring: got no kernel; want those of the program")

// unstarted returns the state of CUPTI, with its result, where our client never began;
// empty where it did, or where nothing is known.
func (r *record) unstarted() string {
	if len(r.kernels) > 0 || slices.ContainsFunc(r.states, isState(ring.CUPTIActive)) {
		return ""
	}
	for _, state := range []ring.CUPTIState{ring.CUPTINoLibrary, ring.CUPTIYielded, ring.CUPTIRefused} {
		if i := slices.IndexFunc(r.states, isState(state)); i >= 0 {
			return r.states[i]
		}
	}
	return ""
}

func isState(want ring.CUPTIState) func(string) bool {
	return func(text string) bool { return text == want.String() || strings.HasPrefix(text, want.String()+" ") }
}

// lacksLibrary reports whether the program found no libcupti.
func (g *program) lacksLibrary() bool {
	return g.ring != nil && isState(ring.CUPTINoLibrary)(g.ring.unstarted())
}

// started reports whether our client began in a program. Where it did not, it adds one
// check in place of all that would fail for that. The program in which torch.profiler
// begins before us has one check, which reports that itself.
func (r *runner) started(g *program) bool {
	if g.ring == nil || g.plan == "before" && !g.lacksLibrary() {
		return true
	}
	state := g.ring.unstarted()
	switch {
	case state == "":
		return true
	case g.lacksLibrary():
		r.noLibrary()
	default:
		r.part.Add(g.name+"-run", report.Failed, "our client of CUPTI did not begin: "+state)
	}
	return false
}

// noLibrary adds one check for all programs.
func (r *runner) noLibrary() {
	if r.without {
		return
	}
	r.without = true
	if r.kit.GPU == nil {
		r.part.Add("library", report.Failed, "the stand-in of libcupti was not found")
		return
	}
	where := "none beside PyTorch either"
	if r.kit.Torch != nil && r.kit.Torch.CUPTI != "" {
		where = "PyTorch has " + r.kit.Torch.CUPTI + ", which was not loaded"
	}
	r.part.Add("library", report.NotShown, fmt.Sprintf("no libcupti in the process, and %s: install NVIDIA's package nvidia-cuda-cupti for this Python, or CUPTI of the CUDA toolkit", where))
}

// rested returns an error where a program that should have the library at rest had none, or
// was not paused to its end.
func (g *program) rested() error {
	if g.ring == nil {
		return errNoRing
	}
	if n := len(g.ring.states); n == 0 || !isState(ring.CUPTIPaused)(g.ring.states[n-1]) {
		return fmt.Errorf("pause program: CUPTI: got states %q; want %s at last", g.ring.states, ring.CUPTIPaused) //nolint:err113 // the states are the machine's
	}
	return nil
}

// recorded returns an error where a program that should be recorded was not.
func (g *program) recorded() error {
	switch {
	case g.ring == nil:
		return errNoRing
	case g.ring.unstarted() != "":
		return fmt.Errorf("record program: CUPTI: %s; want active", g.ring.unstarted()) //nolint:err113 // the state is the machine's
	case len(g.ring.kernels) == 0:
		return errNoKernels
	}
	return nil
}
