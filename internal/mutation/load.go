// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Package is a package as the compiler gets it on this system, without its tests.
type Package struct {
	Path string // import path
	Dir  string // absolute

	fset   *token.FileSet
	files  []*source
	info   *types.Info
	config types.Config
}

// listed is what Load reads of the output of go list.
type listed struct {
	ImportPath string
	Dir        string
	Export     string // file of compiled types
	DepOnly    bool
	GoFiles    []string
	CgoFiles   []string
	Module     *struct{ Dir, GoVersion string }
}

// Load parses and type-checks the packages that match patterns, as go list in the folder
// dir understands them. It returns an error where one does not compile or uses cgo.
func Load(ctx context.Context, dir string, patterns []string) ([]*Package, error) {
	all, err := list(ctx, dir, []string{"-trimpath", "-export", "-deps"}, patterns)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var packages []*Package
	for _, l := range all {
		if l.DepOnly {
			continue
		}
		p, err := load(l, fset, imports)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", l.ImportPath, err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// list returns what go list knows of the packages that match patterns, none for none.
func list(ctx context.Context, dir string, flags, patterns []string) ([]listed, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	fields := "-json=ImportPath,Dir,Export,DepOnly,GoFiles,CgoFiles,Module"
	args := slices.Concat([]string{"list", fields}, flags, []string{"--"}, patterns)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w%s", err, stderr(err))
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		all = append(all, l)
	}
}

// stderr returns what a failed process wrote, on lines of its own.
func stderr(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	return "\n" + strings.TrimSpace(string(exit.Stderr))
}

func load(l listed, fset *token.FileSet, imports types.Importer) (*Package, error) {
	if len(l.CgoFiles) > 0 {
		return nil, fmt.Errorf("got cgo in %s; want Go alone", l.CgoFiles[0])
	}
	if l.Module == nil {
		return nil, errors.New("got a package outside a module; want one of a module")
	}
	p := &Package{
		Path: l.ImportPath, Dir: l.Dir, fset: fset,
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
		config: types.Config{
			Importer: imports, GoVersion: "go" + l.Module.GoVersion,
			Sizes: types.SizesFor("gc", runtime.GOARCH),
		},
	}
	for _, name := range l.GoFiles {
		f, err := p.read(filepath.Join(l.Dir, name), l.Module.Dir)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	_, err := p.config.Check(p.Path, fset, p.syntax(), p.info)
	return p, err
}

func (p *Package) read(path, root string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(p.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path, filepath.ToSlash(name), text, syntax}, nil
}

func (p *Package) syntax() []*ast.File {
	files := make([]*ast.File, len(p.files))
	for i, f := range p.files {
		files[i] = f.syntax
	}
	return files
}

// Compiles reports whether the package with the mutant passes the type checker. Its tests
// and the packages that import it are not checked.
func (p *Package) Compiles(m Mutant) bool {
	changed, err := parser.ParseFile(p.fset, m.file.path, m.content(), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := p.syntax()
	for i, f := range p.files {
		if f == m.file {
			files[i] = changed
		}
	}
	_, err = p.config.Check(p.Path, p.fset, files, nil)
	return err == nil
}
