// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"cmp"
	"math"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func seconds(o *model.Op) float64 { return float64(o.Duration()) / 1e9 }

func rankAccusation(rank int, score float64, decided bool) Accusation {
	return Accusation{ID: "rank " + strconv.Itoa(rank), Ranks: []int64{int64(rank)}, Score: score, Decided: decided}
}

// byScore sorts the highest first.
func byScore(a, b Accusation) int { return cmp.Compare(b.Score, a.Score) }

// mean returns 0 of none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// deviation returns the standard deviation of a sample, 0 of fewer than two.
func deviation(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}
