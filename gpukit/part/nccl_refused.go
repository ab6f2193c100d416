// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// lost adds a failure for ways that broke before another worked. NCCL may refuse one.
func (n *ncclChecks) lost(name string, whys []error) {
	for _, why := range whys {
		if !errors.Is(why, errRefused) {
			n.p.Addf(name+"-way", report.Failed, "another way works; %v", why)
		}
	}
}

// errRefused is wrapped where NCCL's own words refuse ranks on one GPU.
var errRefused = errors.New("NCCL refuses ranks on one GPU")

// errUndone is wrapped where ranks did not do their list for any other reason.
var errUndone = errors.New("ranks did not do their list")

// undone returns why ranks did not do their list.
func undone(res *ncclResult) error {
	lines := []string{res.Log}
	for _, t := range res.Truths {
		lines = append(lines, t.Error)
	}
	if words := ncclRefusal(strings.Join(lines, "\n")); words != "" {
		return fmt.Errorf("%w: %s", errRefused, words)
	}
	return fmt.Errorf("%w: %s", errUndone, ncclWords(res))
}

// failed adds a check for ranks that no way let do their list. It is not shown only where
// NCCL refuses, with the plugin in all ways and without it. control is why the ranks did not
// do it without the plugin; nil: they did.
func (n *ncclChecks) failed(name string, whys []error, control error) {
	texts, refuses := []string{}, errors.Is(control, errRefused)
	for _, why := range whys {
		texts = append(texts, why.Error())
		refuses = refuses && errors.Is(why, errRefused)
	}
	text := strings.Join(texts, "; ")
	switch {
	case control == nil:
		n.p.Addf(name, report.Failed, "the ranks work without the plugin, and not with it: %s", text)
	case errors.Is(control, kit.ErrNoTime):
		n.p.Addf(name, report.Failed, "%s; the job without the plugin, which would decide, had no time", text)
	case refuses:
		n.p.Add(name, report.NotShown, text)
	default:
		n.p.Addf(name, report.Failed, "%s; without the plugin: %v", text, control)
	}
}

// withoutPlugin returns why ranks do not do the list of operations where there is no
// plugin, or kit.ErrNoTime; nil: they do.
func (n *ncclChecks) withoutPlugin(ctx context.Context, world int, way gpuWay) error {
	if !left(ctx, 12*time.Second) {
		return kit.ErrNoTime
	}
	res := n.run(ctx, ncclRun{Name: fmt.Sprintf("bare-%d", world), World: world, Phases: []string{ncclList}, Env: ncclBare, Way: way, Limit: ncclLoopLimit})
	switch {
	case errors.Is(res.Err, kit.ErrNoTime):
		return kit.ErrNoTime
	case allDone(res.Truths, world, ncclList):
		return nil
	}
	return undone(res)
}

// ncclBare keeps NCCL from loading a plugin that lies about.
var ncclBare = []string{"NCCL_PROFILER_PLUGIN=none"}
