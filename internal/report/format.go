// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Duration renders d with three significant digits and the unit that suits it;
// below a microsecond it is given in nanoseconds.
func Duration(d time.Duration) string {
	unit, name := time.Second, "s"
	switch a := d.Abs(); {
	case d == 0:
		return "0 s"
	case a < time.Microsecond:
		unit, name = time.Nanosecond, "ns"
	case a < time.Millisecond:
		unit, name = time.Microsecond, "µs"
	case a < time.Second:
		unit, name = time.Millisecond, "ms"
	}
	return Significant(float64(d)/float64(unit)) + " " + name
}

// Seconds renders a number of seconds as Duration does.
func Seconds(s float64) string {
	return Duration(time.Duration(math.Round(s * float64(time.Second))))
}

// Share renders a share of 0 to 1 in percent.
func Share(s float64) string { return Significant(100*s) + " %" }

// Significant renders v with three significant digits, and larger numbers as whole ones.
func Significant(v float64) string {
	switch a := math.Abs(v); {
	case a == 0 || a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.00995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

// Bytes renders a size in binary units.
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/(1<<10), []string{"KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && v >= 1<<10 {
		v, units = v/(1<<10), units[1:]
	}
	return Significant(v) + " " + units[0]
}

// Thousands renders n with a comma between groups of three digits.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural renders a count with its noun: "1 rank", "2,048 ranks".
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return Thousands(n) + " " + noun + "s"
}

// SomeRanks renders rank numbers as "rank 2" or "ranks 2-6 and 9"; count is how many there are,
// where the list has only the first of them.
func SomeRanks(list []int64, count int) string {
	words, listed := model.Spans(list, maxSpans)
	if rest := count - listed; rest > 0 {
		words = append(words, Thousands(int64(rest))+" more")
	}
	if count == 1 {
		return "rank " + words[0]
	}
	return "ranks " + enumerate(words)
}

// enumerate joins words as a sentence does.
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
