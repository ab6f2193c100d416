// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// The layers of the architecture, from the top. A package is in the first whose folders have it;
// imports point down. CONTRIBUTING.md has them, too, and golangci-lint enforces some edges.
var layers = []struct {
	name    string
	folders []string
}{
	{"beside", []string{"bench", "gpukit", "demo", "e2e", "inject", "internal/repocheck", "internal/capability", "internal/fuzzcomponents", "internal/faulty", "internal/mutation", "internal/testdata", "internal/cbuild", "internal/sim", "internal/ckptsim"}},
	{"compositions", []string{"cmd", "distro"}},
	{"components", []string{"receiver", "processor", "connector", "exporter", "extension", "converter"}},
	{"component kit", []string{"internal/component", "internal/keep"}},
	{"mapping", []string{"internal/otelmap"}},
	{"domain", []string{"internal/model", "internal/semconv"}},
	{"engine kits", []string{"internal/finding", "internal/bounded", "internal/stats", "internal/report"}},
	{"engines", []string{"internal"}},
}

// down is the order of the layers, from the top.
var down = []string{"compositions", "components", "component kit", "mapping", "engines", "engine kits", "domain"}

// helpers are packages of test helpers and the like that any layer may use.
var helpers = []string{"internal/tier", "internal/testdata", "internal/cbuild"}

func layerOf(path string) string {
	for _, l := range layers {
		if below(path, l.folders...) {
			return l.name
		}
	}
	return "beside"
}

// upward finds imports that point up, and imports of what is beside the layers.
func upward(t *tree) (out []count) {
	for _, s := range t.packages {
		from := layerOf(s.path)
		if from == "beside" {
			continue
		}
		for _, i := range s.imports {
			to := layerOf(i)
			if below(i, helpers...) || slices.Index(down, to) >= slices.Index(down, from) {
				continue
			}
			out = append(out, count{s.path, from + " import " + to, s.path + " -> " + i})
		}
	}
	return out
}
