// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/mutation"
)

//go:embed packages.txt
var packagesFile string

// listed returns the packages of a text such as packages.txt, in its order, and the further
// packages of each. A package is a path that starts with "./".
func listed(text string) (packages []string, further map[string][]string) {
	further = map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		packages = append(packages, fields[0])
		further[fields[0]] = fields[1:]
	}
	return packages, further
}

// byImportPath returns the further packages by import path. dir is the folder that the
// paths of further are relative to.
func byImportPath(dir string, packages []*mutation.Package, further map[string][]string) (map[string][]string, error) {
	by := map[string][]string{}
	for _, p := range packages {
		path, err := filepath.Rel(dir, p.Dir)
		if err != nil {
			return nil, fmt.Errorf("list further packages of %s: %w", p.Path, err)
		}
		by[p.Path] = further["./"+filepath.ToSlash(path)]
	}
	return by, nil
}
