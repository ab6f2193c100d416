// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// TestTexts: names are those that spans have, and stay what they were while others are
// made; many of them take one piece of memory.
func TestTexts(t *testing.T) {
	var texts texts
	var got, want []string
	for i := range byte(255) {
		ref := model.SpanRef{Trace: model.TraceID{0: i, 15: 0xa5}, Span: model.SpanID{7: ^i}}
		got, want = append(got, texts.of(&ref)), append(want, ref.String())
	}
	assert.Equal(t, want, got)
	ref := model.SpanRef{}
	assert.Less(t, testing.AllocsPerRun(1000, func() { texts.of(&ref) }), 0.1)
}
