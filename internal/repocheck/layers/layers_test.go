// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPointsUp_EachKindOfImport_IsJudged(t *testing.T) {
	for _, c := range []struct {
		from, to string
		up       bool
	}{
		{"internal/report", "internal/straggler", true},                    // kit, engine
		{"internal/model", "internal/bounded", true},                       // domain, kit
		{"internal/model/evidence", "internal/otelmap", true},              // domain, mapping
		{"internal/straggler", "connector/stragglerconnector", true},       // engine, component
		{"internal/straggler/judge", "internal/sim", true},                 // engine, simulator
		{"receiver/nicreceiver", "cmd/lockstep/internal/otlpfile", true},   // component, composition
		{"internal/straggler", "internal/stats", false},                    // engine, kit
		{"internal/report", "internal/model/evidence", false},              // kit, domain
		{"internal/series", "internal/otelmap", true},                      // kit, mapping
		{"internal/otelmap/strict", "internal/clock/pair", false},          // mapping, engine
		{"internal/model", "internal/model/cut", false},                    // of one layer
		{"internal/model", "internal/modelled", true},                      // a name that begins alike
		{"internal/straggler", "internal/tier", false},                     // helpers
		{"internal/sim", "cmd/lockstep", false},                            // from beside
		{"cmd/lockstep", "connector/stragglerconnector/internal/x", false}, // from the top
	} {
		assert.Equal(t, c.up, PointsUp(c.from, c.to), "%s imports %s", c.from, c.to)
	}
}

func TestOf_FolderThatIsNotListed_IsUnknown(t *testing.T) {
	assert.Equal(t, Unknown, Of("newfolder/inside"))
	assert.Equal(t, beside, Of("bench/census"))
	assert.Equal(t, "engines", Of("internal/newengine"))
	assert.True(t, PointsUp("internal/straggler", "newfolder"))
}
