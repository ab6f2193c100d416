// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
	"github.com/lockstep-otel/lockstep/internal/report"
)

func preflightText(t *testing.T, r *preflight.Result) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WritePreflight(&b, r, report.Style{}))
	return b.String()
}

func someDomain(id string, s model.DomainState, e int64) ckpt.Domain {
	d := ckpt.Domain{Domain: model.Domain{Kind: model.DomainOptimizer, ID: id}, State: s}
	if s == model.DomainCommitted {
		d.Epoch = model.Some(e)
	}
	return d
}

func judged(saves ...ckpt.Save) *preflight.Result {
	root := &ckpt.Root{Saves: saves, Resumes: []ckpt.Resume{{Path: saves[len(saves)-1].Path, Epoch: saves[len(saves)-1].Epoch, By: "latest"}}}
	return preflight.Judge([]preflight.Place{{Name: "/ckpt", Root: root}}, model.Optional[int64]{})
}

func TestPreflightSafe(t *testing.T) {
	text := preflightText(t, judged(
		ckpt.Save{Format: ckpt.FormatDeepSpeed, Path: "global_step100", Epoch: model.Some[int64](100), Domains: []ckpt.Domain{someDomain("rank 0", model.DomainCommitted, 100)}},
		ckpt.Save{Format: ckpt.FormatDeepSpeed, Path: "global_step200", Epoch: model.Some[int64](200), Domains: []ckpt.Domain{
			someDomain("rank 0", model.DomainCommitted, 200), someDomain("rank 1", model.DomainCommitted, 200),
		}}))
	require.True(t, strings.HasPrefix(text, "Safe to resume from epoch 200: all 2 domains confirm it.\n"), text)
	require.Contains(t, text, "judged by     latest")
	require.Contains(t, text, "newest safe   epoch 200, this one")
	require.NotContains(t, text, "problems")
}

func TestPreflightNotSafe(t *testing.T) {
	s := ckpt.Save{Format: ckpt.FormatDeepSpeed, Path: "global_step200", Epoch: model.Some[int64](200)}
	for i := range 40 {
		s.Domains = append(s.Domains, someDomain(fmt.Sprintf("rank %d", i), model.DomainCommitted, 200))
	}
	for i := range 20 {
		s.Domains[i] = someDomain(s.Domains[i].ID, model.DomainAbsent, 0)
		s.Problems = append(s.Problems, ckpt.Problem{Check: ckpt.CheckShards, Severity: ckpt.Partial, File: fmt.Sprintf("shard-%d", i), What: "got no such file; want it"})
	}
	text := preflightText(t, judged(s))
	require.Contains(t, text, "Not safe to resume from epoch 200: 20 of 40 domains do not confirm it")
	require.Contains(t, text, "newest safe   none")
	require.Contains(t, text, "and 8 more domains")
	require.Contains(t, text, "C2")
	require.Contains(t, text, "and 8 more; all are in --json")
}

func TestPreflightNamesWhoHoldsWhat(t *testing.T) {
	text := preflightText(t, judged(ckpt.Save{Path: "x", Epoch: model.Some[int64](200), Domains: []ckpt.Domain{
		someDomain("rank 0", model.DomainCommitted, 200), someDomain("rank 1", model.DomainCommitted, 200), someDomain("rank 2", model.DomainCommitted, 100),
	}}))
	require.Contains(t, text, "100: 1 domain, optimizer rank 2")
	require.Contains(t, text, "200: 2 domains, optimizer rank 0, optimizer rank 1")
}

func TestPreflightVerdicts(t *testing.T) {
	for _, v := range []epoch.Verdict{epoch.Converged, epoch.MixedEpoch, epoch.Converging, epoch.Revoked, epoch.Unknown} {
		require.True(t, strings.HasPrefix(preflightVerdict(&preflight.Result{Verdict: v}), string(v)+": "))
	}
}

// FuzzPreflight: names come from files that others wrote. They neither drive the terminal nor
// make lines longer than it is, but for words that are.
func FuzzPreflight(f *testing.F) {
	f.Add("rank 0", "global_step200", "got \x1b[31m", "a\u202eb")
	f.Fuzz(func(t *testing.T, id, path, what, file string) {
		text := preflightText(t, judged(ckpt.Save{
			Path: path, Epoch: model.Some[int64](1), Domains: []ckpt.Domain{someDomain(id, model.DomainAbsent, 0)},
			Problems: []ckpt.Problem{{Check: ckpt.CheckInput, File: file, What: what}},
		},
			ckpt.Save{Path: path + "2", Epoch: model.Some[int64](2), Domains: []ckpt.Domain{someDomain(id, model.DomainAbsent, 0), someDomain(id, model.DomainCommitted, 3)}}))
		for _, r := range text {
			if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
				t.Fatalf("control character %q in %q", r, text)
			}
		}
	})
}

// Weights alone are said to be so: where that keeps a job from its resume, where it is accepted, and of an export.
// That another file of the same step has them alone is not said of the one that is taken.
func TestPreflightWeightsOnly(t *testing.T) {
	part := func(path, why string) ckpt.Save {
		return ckpt.Save{
			Format: ckpt.FormatLightning, Path: path, Epoch: model.Some[int64](200), WeightsOnly: why,
			Domains: []ckpt.Domain{someDomain(path, model.DomainCommitted, 200)},
		}
	}
	weights, whole := part("last.ckpt", "it has no optimizer"), part("last.ckpt", "")
	text := preflightText(t, judged(weights))
	require.Contains(t, text, "Not safe to resume from epoch 200: complete, weights only: cannot resume")
	require.Contains(t, text, "verdict       complete, weights only: cannot resume training")
	require.Contains(t, text, "newest safe   none: no save that is whole can be resumed from")

	root := &ckpt.Root{Saves: []ckpt.Save{weights}}
	accepted := preflight.JudgeAccepting([]preflight.Place{{Name: "x", Root: root}}, model.Optional[int64]{}, preflight.Accept{WeightsOnly: true})
	oneLine := func(r *preflight.Result) string { return strings.ReplaceAll(preflightText(t, r), "\n", " ") }
	require.Contains(t, oneLine(accepted), "its one domain confirms it; weights only: it has no optimizer.")

	export := weights
	export.Export, export.Format = true, ckpt.FormatSafetensors
	require.Contains(t, oneLine(judged(export)), "its one domain confirms it; weights only: ")
	both := preflightText(t, judged(part("epoch=1-step=200.ckpt", "it has no optimizer"), whole))
	require.True(t, strings.HasPrefix(both, "Safe to resume from epoch 200: all 2 domains confirm it.\n"), both)

	empty := preflight.JudgeAccepting([]preflight.Place{{Name: "x", Root: &ckpt.Root{Empty: true, Bare: true}}}, model.Optional[int64]{}, preflight.Accept{Empty: true})
	require.True(t, strings.HasPrefix(preflightText(t, empty), "No checkpoint: first start."))
}
