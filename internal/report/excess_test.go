// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestBeyondWhatAnOperationTookSoLong(t *testing.T) {
	for _, tc := range []struct {
		f    model.Finding
		want string
	}{
		{model.Finding{Class: model.ClassCompute, Ranks: []int64{1}}, ", 10.0 ms per step more than its peers' median"},
		{model.Finding{Class: model.ClassNode, Ranks: []int64{1, 2}}, ", 10.0 ms per step more than their peers' median, summed over them"},
		{model.Finding{Class: model.ClassJobWide, Ranks: []int64{0, 1, 2}}, ", 10.0 ms per step more than before"},
		{model.Finding{Class: model.ClassJitter}, ""},
	} {
		assert.Equal(t, tc.want, excessText(&tc.f, 0.01), tc.f.Class)
	}
}
