// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// The aims, on a small part of what `go run ./bench/hang` runs: whole dumps, some of them
// missing. Floors, and dumps that are wrapped, cut or of what is active only, are judged by the
// command, which says where an aim is missed.
func TestAims(t *testing.T) {
	var tally Tally
	var wrong strings.Builder
	thin := tier.Thin{Every: 3}
	for _, layout := range []string{"ddp8", "pipe4", "batch4", "moe16", "gloo8"} {
		for _, evidence := range []string{"whole", "json"} {
			for _, rate := range []int{0, 30} {
				if thin.Skips(t) {
					continue
				}
				s := Selection{Layouts: []string{layout}, Evidences: []string{evidence}, Rates: []int{rate}, Seeds: WorkSeeds[:1]}
				require.NoError(t, Run(&s, Engine, 2, func(c Case) {
					tally.Add(&c)
					if c.Wrong() {
						wrong.WriteString("go run ./bench/hang " + c.Name() + " -print\n")
						c.PrintVerdict(&wrong)
					}
				}))
			}
		}
	}
	assert.Positive(t, tally.all.decided)
	assert.Positive(t, tally.quiet.jobs)
	assert.Empty(t, tally.aims(), wrong.String())
}
