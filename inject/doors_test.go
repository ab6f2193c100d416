// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path/filepath"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// TestDoors runs the attacks of ring_test/doors.c, each a few times; bench/doors runs thousands.
func TestDoors(t *testing.T) {
	build(t, cbuild.Plain)
	program := filepath.Join(testdata.Root(t), "bin", "inject", "doors")
	for _, attack := range []struct{ name, quick, full string }{
		{"fork", "10", "500"},
		{"exec", "6", "300"},
		{"threads", "500", "10000"},
		{"signals", "5", "200"},
		{"limits", "128", "2000"},
		{"seccomp", "40", "1880"},
		{"environment", "40", "200"},
		{"neighbour", "300", "30000"},
		{"full", "10000", "1000000"},
	} {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			tries := attack.quick
			if tier.Full(t) {
				tries = attack.full
			}
			t.Log(run(t, program, attack.name, tries))
		})
	}
}
