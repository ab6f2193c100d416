// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// count is one thing that the census counts.
type count struct {
	place string // file:line
	what  string
	group string // what is counted: a type, a function, a field
}

// apart are folders that are no part of what an operator runs.
var apart = []string{"bench", "internal/sim", "internal/ckptsim", "internal/mutation", "internal/repocheck", "internal/capability", "internal/fuzzcomponents", "internal/refusals", "internal/testdata", "demo", "e2e"}

// lives finds places outside internal/finding that make a finding open, updated or closed, or
// give it another revision: each life cycle is a type, or a function without one. Episodes, which
// become findings elsewhere, count: structs with a revision and a beginning.
func lives(t *tree) (out []count) {
	for _, s := range t.packages {
		if below(s.path, "internal/finding") || below(s.path, apart...) {
			continue
		}
		s.functions(func(fn *ast.FuncDecl) {
			note := func(n ast.Node, what string) {
				out = append(out, count{t.place(n), what, s.path + "." + owner(fn)})
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.IncDecStmt:
					if field, of := s.lifeField(n.X); field != "" {
						note(n, of+"."+field+n.Tok.String())
					}
				case *ast.AssignStmt:
					s.assigned(n, note)
				case *ast.CompositeLit:
					s.literal(n, note)
				}
				return true
			})
		})
	}
	return out
}

// lifeField returns the field that an expression selects, and of what, where it is one of a life.
func (s *source) lifeField(e ast.Expr) (field, of string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Revision", "Status", "State"}, sel.Sel.Name) {
		return "", ""
	}
	on := s.holder(sel)
	if name := named(on); hasLife(name, on) {
		return sel.Sel.Name, name
	}
	return "", ""
}

// holder returns the type that has the selected field, which may be embedded.
func (s *source) holder(sel *ast.SelectorExpr) types.Type {
	on := s.info.TypeOf(sel.X)
	if path := s.info.Selections[sel]; path != nil {
		for _, i := range path.Index()[:len(path.Index())-1] {
			on = structOf(on).Field(i).Type()
		}
	}
	return on
}

// hasLife reports whether a type is a finding or an episode.
func hasLife(name string, t types.Type) bool {
	if name == "Finding" {
		return true
	}
	st := structOf(t)
	if st == nil || name == "" {
		return false
	}
	has := map[string]bool{}
	for f := range st.Fields() {
		has[f.Name()] = true
	}
	return has["Revision"] && has["Began"]
}

func (s *source) assigned(n *ast.AssignStmt, note func(ast.Node, string)) {
	for i, left := range n.Lhs {
		field, of := s.lifeField(left)
		if field == "" || len(n.Rhs) != len(n.Lhs) {
			continue
		}
		if n.Tok == token.ADD_ASSIGN || s.isNew(n.Rhs[i]) {
			note(n, of+"."+field+" "+n.Tok.String()+" "+types.ExprString(n.Rhs[i]))
		}
	}
}

// isNew reports whether a value is decided here, and not only copied.
func (s *source) isNew(e ast.Expr) bool {
	if s.info.Types[e].Value != nil {
		return true
	}
	sum := false
	ast.Inspect(e, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		sum = sum || ok && b.Op == token.ADD
		return true
	})
	return sum
}

func (s *source) literal(n *ast.CompositeLit, note func(ast.Node, string)) {
	on := s.info.TypeOf(n)
	name := named(on)
	if !hasLife(name, on) {
		return
	}
	var set []string
	for _, e := range n.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := kv.Key.(*ast.Ident)
		if ok && slices.Contains([]string{"Revision", "Status", "State"}, key.Name) && s.isNew(kv.Value) {
			set = append(set, key.Name+": "+types.ExprString(kv.Value))
		}
	}
	if len(set) > 0 {
		note(n, name+"{"+strings.Join(set, ", ")+"}")
	}
}
