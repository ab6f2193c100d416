// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/report"
)

func TestHeatmap(t *testing.T) {
	j := threeRanks()
	j.Heatmap = kair.Heatmap{Windows: 4, LeftOut: 7, Rows: []kair.HeatRow{
		{Role: 0, First: 2, Last: 2, Ranks: 1, Worst: 2, Score: 0.25, Ahead: []float32{0, -0.5, 0.125, 0}},
		{Role: 1, First: 8, Last: 15, Ranks: 4, Worst: 9, Score: 0.0625, Ahead: []float32{0.25, 0, 0, 0.01}},
	}}
	in := input(j)
	assert.NotContains(t, render(t, in, report.Style{Width: 80}), "rhythm")
	in.Heatmap = true
	said := render(t, in, report.Style{Width: 80})
	assert.Contains(t, said, "    0               2       2   0.250   █░\n")
	assert.Contains(t, said, "    1       4 of 8–15       9   0.062  ▒  ░\n")
	assert.Contains(t, words(said), "darkest: 50.0 % of its operations")
	assert.Contains(t, said, "7 ranks of further roles are left out")
}

// Many windows share a column: the darkest is seen.
func TestHeatmapIsFolded(t *testing.T) {
	j := threeRanks()
	ahead := make([]float32, 128)
	ahead[127] = -1
	j.Heatmap = kair.Heatmap{Windows: 128, Rows: []kair.HeatRow{{Ahead: ahead}}}
	in := input(j)
	in.Heatmap = true
	for _, width := range []int{80, 100, 120} {
		said := render(t, in, report.Style{Width: width})
		assert.Contains(t, said, strings.Repeat(" ", width-40)+"█\n", "%d", width)
	}
}

func TestFrequency(t *testing.T) {
	j := threeRanks()
	j.Frequency = kair.FrequencyView{Windows: 3, Steps: 10, Workers: 8, Seconds: 0.5, Ops: []kair.OpWindows{
		{Op: "gemm", Counts: []float32{16, 0, 8}, Share: []float32{1, 0, 0.5}},
		{Op: "autograd::engine::evaluate_function: AddmmBackward0", Counts: []float32{0, 0, 0.1}, Share: []float32{0, 0, 0.0125}},
	}}
	in := input(j)
	assert.NotContains(t, render(t, in, report.Style{Width: 80}), "gemm")
	in.Frequency = true
	said := render(t, in, report.Style{Width: 80})
	assert.Contains(t, said, "gemm                                    24.0  █ ▒\n")
	assert.Contains(t, said, "autograd::…tion: AddmmBackward0         0.10    ░\n")
	assert.Contains(t, words(said), "at more of the 8 workers; darkest: at 100 % of them. Of 10 steps, 500 ms long on average, in 3 windows.")
}

// A finding of method kair says which limits it passed, and which were not asked.
func TestGatesOfKAIR(t *testing.T) {
	j := threeRanks()
	j.Verdicts[0].Finding.Evidence = evidence.Text(`{"method":"kair","peers":31,"numbers":{"z_score":4.25,"z_score_limit":3,"steps_recent":20,` +
		`"steps_blamed":15,"steps_blamed_limit":3,"steps_blamed_share":0.75,"steps_blamed_share_limit":0.5,"rhythm_windows":128}}`)
	assert.Contains(t, words(render(t, input(j), report.Style{Width: 80})),
		"gates z-score 4.25 on average among 32 ranks, over 3; blamed in 15 of 20 recent steps, at least 3 and 50.0 % of them. "+
			"The rhythm of 128 windows accuses nobody. No limit of cost, of excess or of chance is asked.")
	assert.NotContains(t, render(t, input(threeRanks()), report.Style{Width: 80}), "gates")
}

func TestShade(t *testing.T) {
	for v, want := range map[float64]rune{-1: ' ', 0: ' ', 1e-9: '░', 0.25: '░', 0.26: '▒', 0.75: '▓', 1: '█', 2: '█'} {
		assert.Equal(t, string(want), string(shade(v, 1)), "%v", v)
	}
	assert.Equal(t, " ", string(shade(1, 0)))
}
