// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

const ownModule = "github.com/lockstep-otel/lockstep"

// component is one entry of the builder's manifest.
type component struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
}

// module returns the entry's module path and version.
func (c component) module() (path, version string) {
	path, version, _ = strings.Cut(c.GoMod, " ")
	return path, version
}

// importPath is the package whose NewFactory the builder calls.
func (c component) importPath() string {
	if c.Import != "" {
		return c.Import
	}
	path, _ := c.module()
	return path
}

// manifest is what the tests read of builder-config.yaml.
type manifest struct {
	Receivers  []component `yaml:"receivers"`
	Processors []component `yaml:"processors"`
	Exporters  []component `yaml:"exporters"`
	Connectors []component `yaml:"connectors"`
	Extensions []component `yaml:"extensions"`
	Providers  []component `yaml:"providers"`
	Converters []component `yaml:"converters"`
}

// kinds maps the factory interface's package name to the entries of that kind.
func (m manifest) kinds() map[string][]component {
	return map[string][]component{
		"receiver":  m.Receivers,
		"processor": m.Processors,
		"exporter":  m.Exporters,
		"connector": m.Connectors,
		"extension": m.Extensions,
	}
}

// all returns every entry with a version of its own.
func (m manifest) all() []component {
	all := m.Providers
	for _, entries := range m.kinds() {
		all = append(all, entries...)
	}
	return all
}

func readManifest(t *testing.T) manifest {
	t.Helper()
	return readManifestFile(t, "builder-config.yaml")
}

func readManifestFile(t *testing.T, name string) manifest {
	t.Helper()
	var m manifest
	require.NoError(t, yaml.Unmarshal(readFile(t, name), &m))
	return m
}

// registered returns, by kind, the import paths whose factories the
// generated components.go of a folder registers.
func registered(t *testing.T, folder ...string) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "components.go", readFile(t, append(folder, "components.go")...), 0)
	require.NoError(t, err)
	imports := importsByName(t, file)
	found := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		kind, args := factoryMap(n)
		for _, arg := range args {
			found[kind] = append(found[kind], imports[factoryPackage(arg)])
		}
		return true
	})
	return found
}

func importsByName(t *testing.T, file *ast.File) map[string]string {
	t.Helper()
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = path
	}
	return imports
}

// factoryMap recognises otelcol.MakeFactoryMap[<kind>.Factory](args...).
func factoryMap(n ast.Node) (kind string, args []ast.Expr) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", nil
	}
	index, ok := call.Fun.(*ast.IndexExpr)
	if !ok || selector(index.X) != "otelcol.MakeFactoryMap" {
		return "", nil
	}
	return strings.TrimSuffix(selector(index.Index), ".Factory"), call.Args
}

// factoryPackage returns p of p.NewFactory().
func factoryPackage(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(selector(call.Fun), ".NewFactory")
}

func selector(e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + sel.Sel.Name
}

func TestManifestMatchesGeneratedComponents(t *testing.T) {
	for name, folder := range map[string][]string{
		"builder-config.yaml":       {"distro"},
		"builder-config-agent.yaml": {"distro", "agent"},
	} {
		got := registered(t, folder...)
		for kind, entries := range readManifestFile(t, name).kinds() {
			want := make([]string, 0, len(entries))
			for _, entry := range entries {
				want = append(want, entry.importPath())
			}
			assert.ElementsMatch(t, want, got[kind],
				"%s and %v/components.go disagree on %ss: run 'make generate'", name, folder, kind)
		}
	}
	for kind, entries := range readManifest(t).kinds() {
		assert.NotEmpty(t, entries, "manifest lists no %s", kind)
	}
}

// What the collector for nodes holds, the full collector holds in the same version.
func TestAgentManifest_EachEntry_IsOfTheFullManifest(t *testing.T) {
	full, agent := readManifest(t), readManifestFile(t, "builder-config-agent.yaml")
	for kind, entries := range agent.kinds() {
		assert.Subset(t, full.kinds()[kind], entries, kind)
	}
	assert.Equal(t, full.Providers, agent.Providers)
	assert.NotEmpty(t, agent.Receivers)
}

// Every package of a component folder is in the manifest, so that a new
// component cannot be forgotten.
func TestManifestListsOurComponents(t *testing.T) {
	m := readManifest(t)
	for kind, entries := range m.kinds() {
		listed := map[string]bool{}
		for _, entry := range entries {
			listed[entry.importPath()] = true
		}
		for _, dir := range packagesWithFactory(t, kind) {
			assert.True(t, listed[ownModule+"/"+dir], "%s is missing from builder-config.yaml", dir)
		}
	}
}

// The root module and the distribution stand on one version of the core.
func TestManifestVersionsMatchRootModule(t *testing.T) {
	mod, err := modfile.Parse("go.mod", readFile(t, "go.mod"), nil)
	require.NoError(t, err)
	required := map[string]string{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	for _, entry := range readManifest(t).all() {
		path, version := entry.module()
		if want, ok := required[path]; ok {
			assert.Equal(t, want, version, "%s in builder-config.yaml; go.mod has %s", path, want)
		}
	}
}

// What is compiled of the root for one of these modules is in the build cache for the others
// where they name it alike.
func TestModules_NameTheRootAlike(t *testing.T) {
	for _, module := range []string{"distro", "distro/agent", "e2e", "bench/skew", "bench/kafka"} {
		assert.Regexp(t, `(?m)^(\t|require )github\.com/lockstep-otel/lockstep v0\.0\.0$`, string(readFile(t, module+"/go.mod")), module)
	}
}
