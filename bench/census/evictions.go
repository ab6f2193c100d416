// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
)

// evictions are functions that drop entries of plain maps, where a bounded.Map may do it.
type evictions struct {
	unexplained []count
	excused     []count  // a reason is given
	unused      []string // reasons for functions that do no such thing
	named       []count  // functions that are called evict, forget, prune or expire
}

// evictsFrom finds functions of engines and components that go through the plain map of a struct's
// field and delete from it: with maps.DeleteFunc; or with a range over the map, or over its keys,
// and a delete from it in the same function or in one of the package that it calls. Whether an
// entry leaves for an age, a number, bytes or a rule of the domain does not follow from the source.
// evictions.txt has the reasons why functions need no bounded.Map.
//
// It misses entries that leave in an order that a list, a slice or a ring holds beside the map,
// maps that are cleared or made anew, maps with bool or 8-bit keys, deletes in other packages,
// and those behind two calls. A map that lives for one call has no entries to evict.
func evictsFrom(t *tree, reasons map[string]string) (out evictions) {
	used := map[string]bool{}
	for _, s := range t.packages {
		if !ofEngines(s) {
			continue
		}
		u := s.useOfMaps()
		deletes := map[types.Object][]*types.Var{}
		s.functions(func(fn *ast.FuncDecl) { deletes[s.info.Defs[fn.Name]] = s.deleted(u, fn) })
		s.functions(func(fn *ast.FuncDecl) {
			name := s.path + "." + method(fn)
			if evictionName.MatchString(fn.Name.Name) && !below(s.path, "internal/finding", "internal/stats") {
				out.named = append(out.named, count{t.place(fn), "function", name})
			}
			of := s.evicted(u, fn, deletes)
			if of == nil {
				return
			}
			c := count{t.place(fn), "drops from " + of.Name(), name}
			if reasons[name] != "" {
				used[name] = true
				out.excused = append(out.excused, c)
				return
			}
			out.unexplained = append(out.unexplained, c)
		})
	}
	out.unused = others(reasons, used)
	return out
}

var evictionName = regexp.MustCompile(`([eE]vict|[fF]orget|[pP]rune|[eE]xpire)`)

// method names a function, with its receiver's type where it has one.
func method(fn *ast.FuncDecl) string {
	if o := owner(fn); o != fn.Name.Name {
		return o + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// evicted returns a map that a function goes through and deletes from; nil where there is none.
func (s *source) evicted(u *mapUse, fn *ast.FuncDecl, deletes map[types.Object][]*types.Var) (of *types.Var) {
	var through []*types.Var
	gone := slices.Clone(deletes[s.info.Defs[fn.Name]])
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			through = append(through, s.plainMap(u, n.X))
		case *ast.CallExpr:
			switch called := s.called(n); {
			case called == nil:
			case isFrom(called, "maps", "Keys", "Values", "All"):
				through = append(through, s.plainMap(u, n.Args[0]))
			case isFrom(called, "maps", "DeleteFunc"):
				m := s.plainMap(u, n.Args[0])
				through, gone = append(through, m), append(gone, m)
			case called.Pkg() == s.types:
				gone = append(gone, deletes[called.Origin()]...)
			}
		}
		return true
	})
	for _, m := range through {
		if m != nil && slices.Contains(gone, m) {
			return m
		}
	}
	return nil
}

// deleted finds the maps that a function deletes from.
func (s *source) deleted(u *mapUse, fn *ast.FuncDecl) (out []*types.Var) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && s.info.Uses[id] == types.Universe.Lookup("delete") {
				if m := s.plainMap(u, call.Args[0]); m != nil {
					out = append(out, m)
				}
			}
		}
		return true
	})
	return out
}

// plainMap returns the field that holds a map; nil where the expression is none.
func (s *source) plainMap(u *mapUse, e ast.Expr) *types.Var {
	if _, ok := underlying(s.info.TypeOf(e)).(*types.Map); !ok {
		return nil
	}
	return s.field(u, e)
}

// called returns the function that is called; nil where it has no name.
func (s *source) called(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	if at, ok := fun.(*ast.IndexExpr); ok {
		fun = at.X
	}
	var id *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	f, _ := s.info.Uses[id].(*types.Func)
	return f
}

func isFrom(f *types.Func, path string, names ...string) bool {
	return f.Pkg() != nil && f.Pkg().Path() == path && slices.Contains(names, f.Name())
}
