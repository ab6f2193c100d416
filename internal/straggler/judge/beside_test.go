// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// besideBut makes all ranks but one run a kernel beside communication; "" is all kernels.
func besideBut(rank int, key string) func(int, []testRow) {
	return func(_ int, rows []testRow) {
		for r := range rows {
			for k := range rows[r].kernels {
				if key == "" || rows[r].kernels[k].key == key {
					rows[r].kernels[k].overlapped = r != rank
				}
			}
		}
	}
}

func TestKernelsOfTwoSortsAreCompared(t *testing.T) {
	for _, key := range []string{"gemm", ""} {
		for _, by := range []float64{1.1, 1.3} {
			t.Run(fmt.Sprint(key, by), func(t *testing.T) {
				expect(t, newTestJob(8, 1).with(besideBut(3, key)).with(slowRank(3, by)).judged(), what{model.ClassCompute, 3})
			})
		}
		// Nobody is slow: beside communication all take longer.
		for _, cost := range []float64{1, 1.2, 1.35} {
			t.Run(fmt.Sprint("healthy", key, cost), func(t *testing.T) {
				for _, alone := range []bool{true, false} {
					job := newTestJob(8, 1).with(besideBut(3, key)).with(func(_ int, rows []testRow) {
						for r := range rows {
							for k := range rows[r].kernels {
								x := &rows[r].kernels[k]
								if !alone && (key == "" || x.key == key) {
									x.overlapped = !x.overlapped
								}
								if x.overlapped {
									x.each *= cost
								}
							}
						}
					})
					expect(t, job.judged())
				}
			})
		}
	}
}
