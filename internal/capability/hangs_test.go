// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/hang/suite"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Simulated jobs hang for a known reason and are dumped whole: what is told of them is what
// the row of Flight Recorder says, and nobody is named who is not at fault.
func TestHangsFromDumps(t *testing.T) {
	for name, h := range hangs {
		if h.family == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			told := []string{}
			s := suite.Selection{
				Families: []string{h.family}, Layouts: []string{"ddp8", "moe16", "pipe4"}, Evidences: []string{"whole"},
				Rates: []int{0}, Seeds: []uint64{1},
			}
			cases := 0
			require.NoError(t, suite.Run(&s, fromDumps, 1, func(c suite.Case) {
				cases++
				require.NotNil(t, c.Report)
				assert.Zero(t, c.Outcome.Victims, c.Name())
				told = append(told, toldOf(c.Report)...)
			}))
			assert.Positive(t, cases)
			slices.Sort(told)
			assert.Equal(t, h.told, slices.Compact(told))
		})
	}
}

// fromDumps judges without what others saw of the network.
func fromDumps(in *suite.Input) *desync.Report {
	alone := *in
	alone.Witnesses = nil
	return suite.Engine(&alone)
}

func toldOf(rep *desync.Report) (told []string) {
	for i := range rep.Roots {
		switch class := rep.Roots[i].Finding.Class; class {
		case model.ClassIncompleteEvidence, model.ClassDumpMissing:
		default:
			told = append(told, class)
		}
	}
	if len(told) == 0 {
		return []string{Nobody}
	}
	return told
}
