// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/types"
	"strings"
)

// parses finds places outside internal/model/evidence that read the JSON of a finding's
// evidence: calls that decode in a function that selects Finding.Evidence or names its attribute,
// and functions that get the text as an argument named evidence.
func parses(t *tree) (out []count) {
	for _, s := range t.packages {
		if below(s.path, "internal/model/evidence") || below(s.path, apart...) && !below(s.path, "bench") {
			continue
		}
		s.functions(func(fn *ast.FuncDecl) {
			if !s.touchesEvidence(fn) {
				return
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if target, ok := s.decodes(call); ok {
					out = append(out, count{t.place(call), "into " + target, s.path + "." + fn.Name.Name})
				}
				return true
			})
		})
	}
	return out
}

func (s *source) touchesEvidence(fn *ast.FuncDecl) (yes bool) {
	for _, p := range fn.Type.Params.List {
		for _, name := range p.Names {
			yes = yes || strings.EqualFold(name.Name, "evidence")
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			yes = yes || sel.Sel.Name == "Evidence" && named(s.info.TypeOf(sel.X)) == "Finding" || sel.Sel.Name == "FindingEvidence"
		}
		return true
	})
	return yes
}

// decodes reports whether a call decodes JSON, and into what type.
func (s *source) decodes(call *ast.CallExpr) (target string, ok bool) {
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel || len(call.Args) == 0 {
		return "", false
	}
	fn, isFunc := s.info.Uses[sel.Sel].(*types.Func)
	if !isFunc || fn.Pkg() == nil || fn.Pkg().Path() != "encoding/json" || fn.Name() != "Unmarshal" && fn.Name() != "Decode" {
		return "", false
	}
	last := s.info.TypeOf(call.Args[len(call.Args)-1])
	if p, ok := last.(*types.Pointer); ok {
		last = p.Elem()
	}
	if name := named(last); name != "" {
		return name, true
	}
	return "a struct without a name", true
}
