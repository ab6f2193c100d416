// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"strings"
)

// retries finds functions of engines and components that loop over a delivery: in one loop they call a
// next component, by a name that begins with "consume", or ask for the next wait of a backoff, and wait.
func retries(t *tree) (out []count) {
	for _, s := range t.packages {
		if !ofEngines(s) {
			continue
		}
		s.functions(func(fn *ast.FuncDecl) {
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				var body *ast.BlockStmt
				switch loop := n.(type) {
				case *ast.ForStmt:
					body = loop.Body
				case *ast.RangeStmt:
					body = loop.Body
				default:
					return true
				}
				called := calls(body)
				if called["NextBackOff"] || called["consume"] && (called["After"] || called["Sleep"] || called["NewTimer"]) {
					out = append(out, count{t.place(n), "retries a delivery", s.path + "." + owner(fn)})
					return false // one inside is the same
				}
				return true
			})
		})
	}
	return out
}

// calls are the names of the functions that a block calls; all that begin with "consume" are "consume".
func calls(block *ast.BlockStmt) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(block, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := ast.Unparen(call.Fun).(type) {
		case *ast.SelectorExpr:
			name = f.Sel.Name
		case *ast.Ident:
			name = f.Name
		}
		if strings.HasPrefix(strings.ToLower(name), "consume") {
			name = "consume"
		}
		names[name] = true
		return true
	})
	return names
}
