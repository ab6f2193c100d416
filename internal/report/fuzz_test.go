// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// FuzzFindings renders findings whose text came from elsewhere: nothing in it
// may stop the report or drive the terminal.
func FuzzFindings(f *testing.F) {
	f.Add("host", "data", `{"next_ranks":[1,2],"decisive":{"collective":"all_reduce","gap_to_second_last_seconds":0.5}}`, "act", 0.5)
	f.Add("\x1b[2J", "\r\n", `{"decisive":{"collective":"\u001b[31m"},"confidence_lowered_by":["\u0007"]}`, "\x9b1m", -1e300)
	f.Add("", "", `[1]`, "", 1e-30)
	f.Fuzz(func(t *testing.T, class, op, text, action string, cost float64) {
		var b strings.Builder
		finding := model.Finding{
			Class: class, Op: op, Host: op, Cause: class, CommID: action, JobID: op, Stack: action,
			Rank: model.Some(int64(1)), CostSeconds: model.Some(cost), CostShare: model.Some(cost),
			WaitCaused: model.Some(cost), Evidence: evidence.FromText(text), Action: action,
		}
		var all []model.Finding
		for _, kind := range []string{model.FindingStraggler, model.FindingDesync, model.FindingEpoch, op} {
			finding.Kind = kind
			all = append(all, finding)
		}
		err := Findings(&b, all, Style{})
		if err != nil {
			t.Fatalf("render: %v", err)
		}
		for _, r := range b.String() {
			if r < ' ' && r != '\n' {
				t.Fatalf("control character %q in %q", r, b.String())
			}
		}
	})
}
