// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// shades draw a share of the darkest; the first is nothing.
var shades = []rune(" ░▒▓█")

// shade returns the mark of v on a scale from 0 to most. Anything above 0 shows.
func shade(v, most float64) rune {
	if !(v > 0) || !(most > 0) {
		return shades[0]
	}
	i := int(math.Ceil(v / most * float64(len(shades)-1)))
	return shades[min(i, len(shades)-1)]
}

// folded returns the largest of each run of cells, so that no more than width are left.
func folded(cells []float64, width int) []float64 {
	if len(cells) <= width {
		return cells
	}
	out := make([]float64, 0, width)
	for i := range width {
		out = append(out, slices.Max(cells[i*len(cells)/width:max(i*len(cells)/width+1, (i+1)*len(cells)/width)]))
	}
	return out
}

func strip(cells []float64, width int, most float64) string {
	var b strings.Builder
	for _, v := range folded(cells, width) {
		b.WriteRune(shade(v, most))
	}
	return strings.TrimRight(b.String(), " ")
}

// ends shortens s to at most n columns and keeps its end, by which names of one library
// differ.
func ends(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := n / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-head-1):])
}

// Columns of the heatmap before its cells.
const (
	heatRole  = 5
	heatRanks = 16
	heatWorst = 8
	heatScore = 8
)

// heatmap draws how far each rank's rhythm of operations was from its role's: a line a
// rank, or where there are many, a line for several of one role, of which the one is
// shown that diverges most.
func (p *printer) heatmap(h *kair.Heatmap) {
	if len(h.Rows) == 0 {
		return
	}
	most := 0.0
	rows := make([][]float64, len(h.Rows))
	for i := range h.Rows {
		for _, v := range h.Rows[i].Ahead {
			rows[i] = append(rows[i], math.Abs(float64(v)))
			most = max(most, math.Abs(float64(v)))
		}
	}
	p.Line("%s", p.Paint(report.Bold, "rhythm of operations over the latest step"))
	p.Line("%s", p.Paint(report.Dim, report.PadLeft("role", heatRole)+report.PadLeft("ranks", heatRanks)+report.PadLeft("worst", heatWorst)+report.PadLeft("K-S", heatScore)+"  start … end"))
	width := p.Columns() - heatRole - heatRanks - heatWorst - heatScore - 2
	for i := range h.Rows {
		r := &h.Rows[i]
		p.Line("%s%s%s%s  %s", report.PadLeft(strconv.Itoa(r.Role), heatRole), report.PadLeft(span(r), heatRanks),
			report.PadLeft(strconv.FormatInt(r.Worst, 10), heatWorst), report.PadLeft(fmt.Sprintf("%.3f", r.Score), heatScore), strip(rows[i], width, most))
	}
	if h.LeftOut > 0 {
		p.Line("%s", p.Paint(report.Dim, fmt.Sprintf("%s of further roles are left out", report.Plural(int64(h.LeftOut), "rank"))))
	}
	p.note(fmt.Sprintf("Darker: further ahead of, or behind, the median of the role; darkest: %s of its operations. "+
		"K-S: mean distance from all others of the role. It shows who moves differently, victims of a slow rank, too, and accuses nobody.", report.Share(most)))
}

func span(r *kair.HeatRow) string {
	if r.First == r.Last {
		return strconv.FormatInt(r.First, 10)
	}
	return fmt.Sprintf("%d of %d–%d", r.Ranks, r.First, r.Last)
}

// Columns of the frequency view before its cells.
const (
	freqName  = 32
	freqCount = 12
)

// frequency draws how often each operation occurs over the step, over all workers.
func (p *printer) frequency(f *kair.FrequencyView) {
	if len(f.Ops) == 0 {
		return
	}
	p.Line("%s", p.Paint(report.Bold, "how often operations occur over a step"))
	p.Line("%s", p.Paint(report.Dim, report.PadRight("operation", freqName)+report.PadLeft("per step", freqCount)+"  start … end"))
	most := 0.0
	shares := make([][]float64, len(f.Ops))
	for i := range f.Ops {
		for _, v := range f.Ops[i].Share {
			shares[i] = append(shares[i], float64(v))
			most = max(most, float64(v))
		}
	}
	width := p.Columns() - freqName - freqCount - 2
	for i := range f.Ops {
		var count float64
		for _, n := range f.Ops[i].Counts {
			count += float64(n)
		}
		p.Line("%s%s  %s", report.PadRight(ends(report.Clean(f.Ops[i].Op), freqName-1), freqName), report.PadLeft(report.Significant(count), freqCount), strip(shares[i], width, most))
	}
	p.note(fmt.Sprintf("Darker: at more of the %s workers; darkest: at %s of them. Of %s, %s long on average, in %s.",
		strconv.FormatFloat(f.Workers, 'g', 4, 64), report.Share(most), report.Plural(int64(f.Steps), "step"),
		report.Duration(time.Duration(f.Seconds*float64(time.Second))), report.Plural(int64(f.Windows), "window")))
}

// note ends a drawing with what it means.
func (p *printer) note(text string) {
	for _, l := range report.Wrap(text, p.Columns()) {
		p.Line("%s", p.Paint(report.Dim, l))
	}
	p.Line("")
}
