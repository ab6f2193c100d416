// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkEncode(b *testing.B) {
	s := typicalState(4321, 16384)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(Encode(&s))))
	}
}

// All ranks of a job, as an analysis reads them.
func BenchmarkDecodeJob(b *testing.B) {
	for _, world := range []int64{1024, 16384} {
		b.Run(fmt.Sprint(world), func(b *testing.B) {
			forms := make([][]byte, world)
			bytes := int64(0)
			for rank := range world {
				s := typicalState(rank, world)
				forms[rank] = Encode(&s)
				bytes += int64(len(forms[rank]))
			}
			b.ReportAllocs()
			b.SetBytes(bytes)
			for b.Loop() {
				var d Decoder
				for _, form := range forms {
					_, err := d.Decode(form)
					require.NoError(b, err)
				}
			}
			b.ReportMetric(float64(bytes)/float64(world), "B/state")
		})
	}
}
