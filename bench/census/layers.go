// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/lockstep-otel/lockstep/internal/repocheck/layers"

// upward finds imports that point up, and imports of what is beside the layers.
func upward(t *tree) (out []count) {
	for _, s := range t.packages {
		for _, i := range s.imports {
			if layers.PointsUp(s.path, i) {
				out = append(out, count{s.path, layers.Of(s.path) + " import " + layers.Of(i), s.path + " -> " + i})
			}
		}
	}
	return out
}
