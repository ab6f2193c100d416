// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/types"
)

// hubs finds what the instances of a connector share: struct types of connectors, and of the component kit,
// that hold an interval.
func hubs(t *tree) (out []count) {
	for _, s := range t.packages {
		if !below(s.path, "connector", "internal/component") {
			continue
		}
		for _, file := range s.files {
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if of, ok := s.info.Defs[spec.Name].Type().Underlying().(*types.Struct); ok && holdsInterval(of) {
					out = append(out, count{t.place(spec), "holds an interval", s.path + "." + spec.Name.Name})
				}
				return false
			})
		}
	}
	return out
}

func holdsInterval(of *types.Struct) bool {
	for f := range of.Fields() {
		p, ok := f.Type().(*types.Pointer)
		if !ok {
			continue
		}
		if n, ok := p.Elem().(*types.Named); ok && n.Obj().Name() == "Interval" {
			return true
		}
	}
	return false
}
