// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowd returns a module of three packages. Each has 20 thresholds, and ten times as many
// comparisons as calls.
func crowd(t *testing.T) []*Package {
	t.Helper()
	files := map[string]string{}
	for i := range 3 {
		var text strings.Builder
		text.WriteString("package a\n\nfunc f(x, y int, g func()) {\n")
		for j := range 10 {
			fmt.Fprintf(&text, "\t_ = x > %d\n", 2+j)
			text.WriteString("\t_ = x > y\n")
		}
		text.WriteString("\tv := 2\n\tg()\n\tf(v, v, g)\n}\n")
		files[fmt.Sprintf("p%d/a.go", i)] = text.String()
	}
	return loadToy(t, files)
}

func ids(mutants []Mutant) []string {
	var all []string
	for _, m := range mutants {
		all = append(all, m.ID())
	}
	return all
}

func TestSample_SameSeed_RepeatsItself(t *testing.T) {
	packages := crowd(t)

	whole, _ := NewSampler(1, packages).Sample(30)
	parts := NewSampler(1, packages)
	first, _ := parts.Sample(10)
	second, _ := parts.Sample(20)
	other, _ := NewSampler(2, packages).Sample(30)

	assert.Equal(t, ids(whole), ids(append(first, second...)))
	assert.NotEqual(t, ids(whole), ids(other))
}

func TestSample_ManyOfOneKind_IsSpread(t *testing.T) {
	packages := crowd(t)
	for seed := range uint64(20) {
		sample, _ := NewSampler(seed, packages).Sample(48)
		require.Len(t, sample, 48)
		kinds, folders := map[Kind]int{}, map[string]int{}
		for _, m := range sample {
			kinds[m.Kind]++
			folders[m.Package]++
		}
		assert.Equal(t, 12, kinds[Threshold], "a quarter")
		for folder, n := range folders {
			assert.Equal(t, 16, n, folder)
		}
		assert.Equal(t, 3, kinds[Drop], "all calls that can go, for there are few")
		assert.Equal(t, 6, kinds[Number])
		assert.InDelta(t, kinds[Boundary], kinds[Negation], 3)
	}
}

func TestSample_All_ReturnsEachOnceAndCountsRejected(t *testing.T) {
	packages := crowd(t)
	all := map[string]bool{}
	for _, p := range packages {
		for _, m := range p.Find() {
			all[m.ID()] = true
		}
	}

	sample, rejected := NewSampler(1, packages).Sample(1000)

	assert.Equal(t, 3, rejected, "v is not used where f is not called")
	assert.Len(t, sample, len(all)-rejected)
	for _, id := range ids(sample) {
		assert.True(t, all[id], "%s comes once", id)
		delete(all, id)
	}
}
