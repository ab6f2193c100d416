// SPDX-License-Identifier: Apache-2.0

// Package layers knows the layers of the architecture, as CONTRIBUTING.md has them, and which
// imports point up. Paths are folders below the root of the module: "internal/model".
package layers

import (
	"slices"
	"strings"
)

// beside are the packages that no layer imports: benchmarks, tests of the repository, and
// simulators, since an engine that knows its simulator is tested against itself.
const beside = "beside"

// Unknown is the layer of a package in a top folder that the list does not have.
const Unknown = "unknown"

// layers are the layers from the top. A package is in the first whose folders have it.
var layers = []struct {
	name    string
	folders []string
}{
	{beside, []string{"bench", "gpukit", "demo", "e2e", "inject", "internal/repocheck", "internal/capability", "internal/fuzzcomponents", "internal/faulty", "internal/refusals", "internal/mutation", "internal/testdata", "internal/cbuild", "internal/sim", "internal/ckptsim"}},
	{"compositions", []string{"cmd", "distro"}},
	{"components", []string{"receiver", "processor", "connector", "exporter", "extension", "converter"}},
	{"component kit", []string{"internal/component"}},
	{"mapping", []string{"internal/otelmap"}},
	{"domain", []string{"internal/model", "internal/semconv"}},
	{"engine kits", []string{"internal/finding", "internal/bounded", "internal/stats", "internal/report", "internal/series"}},
	{"engines", []string{"internal"}},
}

// down is the order of the layers, from the top.
var down = []string{"compositions", "components", "component kit", "mapping", "engines", "engine kits", "domain"}

// helpers are packages of test helpers and the like that any layer may use.
var helpers = []string{"internal/tier", "internal/testdata", "internal/cbuild"}

// Of returns the layer of a package: "beside" for those beside the layers, Unknown where no folder of the
// list has it.
func Of(path string) string {
	for _, l := range layers {
		if below(path, l.folders) {
			return l.name
		}
	}
	return Unknown
}

// PointsUp reports whether an import of one package by another points up, or from a layer to what
// is beside the layers or unknown. A package beside them, or an unknown one, may import any.
func PointsUp(from, to string) bool {
	if layer := Of(from); layer == beside || layer == Unknown || below(to, helpers) {
		return false
	}
	return slices.Index(down, Of(to)) < slices.Index(down, Of(from))
}

// below reports whether a path is one of the folders or in one.
func below(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path+"/", f+"/") })
}
