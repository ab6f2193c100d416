// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// longName is state of an optimizer for a parameter that is in n modules within each other.
func longName(n int) string { return "o." + strings.Repeat("a.", n) + "exp_avg" }

func TestNamesOf_LongName(t *testing.T) {
	const parts = 300_000 // where each byte is read for each part this takes minutes
	n := namesOf([]dcpItem{{fqn: "model.b"}, {fqn: longName(parts)}}, false)
	require.Equal(t, model.DomainModel, n.kind(longName(parts)), "it names no parameter")
}

func TestNamesOf_StateOfAParameterBelowKeys(t *testing.T) {
	const param = "layers.0.weight"
	for keys := range maxKeysBefore + 1 {
		name := strings.Repeat("k.", keys) + param + ".exp_avg"
		n := namesOf([]dcpItem{{fqn: "model." + param}, {fqn: name}}, false)
		want := model.DomainOptimizer
		if keys == maxKeysBefore {
			want = model.DomainModel
		}
		require.Equal(t, want, n.kind(name), name)
	}
	deep := strings.Repeat("a.", 100) + "weight"
	n := namesOf([]dcpItem{{fqn: "model." + deep}, {fqn: "o." + deep + ".exp_avg"}}, false)
	require.Equal(t, model.DomainOptimizer, n.kind("o."+deep+".exp_avg"), "of any depth")
}

// BenchmarkNamesOf_LongName prints how much longer a name of twice the bytes takes: 2 is linear.
func BenchmarkNamesOf_LongName(b *testing.B) {
	took := func(parts int) time.Duration {
		items := []dcpItem{{fqn: "model.b"}, {fqn: longName(parts)}}
		began := time.Now()
		namesOf(items, false).kind(items[1].fqn)
		return time.Since(began)
	}
	for _, parts := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(parts, " parts"), func(b *testing.B) {
			var once, twice time.Duration
			for b.Loop() {
				once += took(parts)
				twice += took(2 * parts)
			}
			b.ReportMetric(float64(twice)/float64(once), "ratio")
		})
	}
}
