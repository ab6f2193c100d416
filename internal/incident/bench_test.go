// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Findings that all touch one another are the dearest to join.
func BenchmarkAdd(b *testing.B) {
	e := NewEngine(NewDefaultConfig())
	now := time.Now()
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		f := received(fmt.Sprint("f", i), 1, i, i, i+10)
		f.CommID, f.StepLast = "world", model.Some(i)
		e.Add(f, now)
		i++
	}
}
