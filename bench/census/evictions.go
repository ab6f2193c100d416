// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/types"
	"slices"
)

// evictions are maps that a function drops entries of, where a bounded.Map may do it.
type evictions struct {
	unexplained []count
	excused     []count  // a reason is given
	unused      []string // reasons for what does not happen
}

// evictsFrom finds functions of engines and components that go through the plain map of a struct's
// field and delete from it. A function goes through a map with a range over it or its keys, with
// maps.DeleteFunc, or with a list or iterator from a function of the package that goes through it.
// It deletes by itself, or by a function of the package that does not go through the map: one that
// does counts in place of its callers. Each map of a function counts for itself. Whether an entry
// leaves for an age, a number, bytes or a rule of the domain does not follow from the source, and a
// map that is emptied to be used again counts, too. evictions.txt has the reasons why none of them is
// a bounded.Map.
//
// It misses entries that leave in an order that a list, a slice or a ring holds beside the map,
// maps that are cleared or replaced, maps with bool or 8-bit keys, and loops and deletes in other
// packages, in callbacks and behind two calls. It misses an entry that one function chooses
// and returns and another one drops, as internal/straggler.Engine.shrink drops from Engine.jobs: most
// functions that return one entry of a map look it up for something else. A map that lives for one call
// has no entries to evict.
func evictsFrom(t *tree, reasons map[string]string) (out evictions) {
	used := map[string]bool{}
	for _, s := range t.packages {
		if !ofEngines(s) {
			continue
		}
		u := s.useOfMaps()
		e := evicting{s, u, map[types.Object][]*types.Var{}, map[types.Object][]*types.Var{}}
		s.functions(func(fn *ast.FuncDecl) {
			of := s.info.Defs[fn.Name]
			e.walks[of], e.deletes[of] = s.walked(u, fn), s.deleted(u, fn)
		})
		s.functions(func(fn *ast.FuncDecl) {
			for _, of := range e.evicted(fn) {
				c := count{t.place(fn), "drops from " + of.Name(), s.path + "." + method(fn) + " " + u.name(of)}
				if reasons[c.group] == "" {
					out.unexplained = append(out.unexplained, c)
					continue
				}
				used[c.group] = true
				out.excused = append(out.excused, c)
			}
		})
	}
	out.unused = others(reasons, used)
	return out
}

// evicting is what functions of a package do with the maps of fields.
type evicting struct {
	*source

	use     *mapUse
	walks   map[types.Object][]*types.Var // maps that a function goes through
	deletes map[types.Object][]*types.Var // maps that it deletes from
}

// method names a function, with its receiver's type where it has one.
func method(fn *ast.FuncDecl) string {
	if o := owner(fn); o != fn.Name.Name {
		return o + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// evicted returns the maps that a function goes through and deletes from.
func (e *evicting) evicted(fn *ast.FuncDecl) (all []*types.Var) {
	through, gone := e.walks[e.info.Defs[fn.Name]], slices.Clone(e.deletes[e.info.Defs[fn.Name]])
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		called := e.called(call)
		if called == nil || called.Pkg() != e.types {
			return true
		}
		called = called.Origin()
		if returnsSeveral(called) {
			through = append(through, e.walks[called]...)
		}
		for _, m := range e.deletes[called] {
			if !slices.Contains(e.walks[called], m) {
				gone = append(gone, m)
			}
		}
		return true
	})
	for _, m := range through {
		if slices.Contains(gone, m) && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// walked finds the maps that a function goes through.
func (s *source) walked(u *mapUse, fn *ast.FuncDecl) (out []*types.Var) {
	add := func(e ast.Expr) {
		if m := s.plainMap(u, e); m != nil {
			out = append(out, m)
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			add(n.X)
		case *ast.CallExpr:
			if called := s.called(n); called != nil && isFrom(called, "maps", "Keys", "Values", "All", "DeleteFunc") {
				add(n.Args[0])
			}
		}
		return true
	})
	return out
}

// returnsSeveral reports whether a function returns a slice or an iterator.
func returnsSeveral(fn types.Object) bool {
	sig, ok := fn.Type().(*types.Signature)
	if !ok {
		return false
	}
	for v := range sig.Results().Variables() {
		switch v.Type().Underlying().(type) {
		case *types.Slice, *types.Signature:
			return true
		}
	}
	return false
}

// deleted finds the maps that a function deletes from.
func (s *source) deleted(u *mapUse, fn *ast.FuncDecl) (out []*types.Var) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !s.deletes(call) {
			return true
		}
		if m := s.plainMap(u, call.Args[0]); m != nil {
			out = append(out, m)
		}
		return true
	})
	return out
}

// deletes reports whether a call deletes from its first argument.
func (s *source) deletes(call *ast.CallExpr) bool {
	if id, ok := call.Fun.(*ast.Ident); ok && s.info.Uses[id] == types.Universe.Lookup("delete") {
		return true
	}
	called := s.called(call)
	return called != nil && isFrom(called, "maps", "DeleteFunc")
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
