// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// packagesWithFactory returns the folders below dir that hold a factory.go,
// relative to the root and with forward slashes.
func packagesWithFactory(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*", "factory.go"))
	require.NoError(t, err)
	var dirs []string
	for _, file := range files {
		rel, err := filepath.Rel(root, filepath.Dir(file))
		require.NoError(t, err)
		dirs = append(dirs, filepath.ToSlash(rel))
	}
	return dirs
}

// skippedDirs hold nothing that we wrote.
var skippedDirs = map[string]bool{"bin": true, "dist": true, ".git": true, ".venv": true, ".venv-frameworks": true, ".cache": true}

func markdownFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skippedDirs[d.Name()]:
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			files = append(files, path)
		}
		return nil
	}))
	return files
}

var (
	codeBlock    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

func TestRelativeLinksResolve(t *testing.T) {
	files := markdownFiles(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text := codeBlock.ReplaceAllString(string(content), "")
		for _, match := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(file), target))
			assert.NoError(t, err, "%s links to %s", file, target)
		}
	}
}

func TestDecisionsAreIndexedAndComplete(t *testing.T) {
	index := string(readFile(t, "docs", "adr", "README.md"))
	files, err := filepath.Glob(filepath.Join(root, "docs", "adr", "[0-9]*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	numbers := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		assert.Contains(t, index, "("+name+")", "docs/adr/README.md lists every decision")
		number, _, _ := strings.Cut(name, "-")
		assert.Empty(t, numbers[number], "number of %s is taken", name)
		numbers[number] = name
		content := string(readFile(t, "docs", "adr", name))
		for _, heading := range []string{"## Context", "## Decision", "## Alternatives considered", "## Consequences"} {
			assert.Contains(t, content, heading, "%s", name)
		}
	}
}

var (
	makeCommand = regexp.MustCompile("(?m)(?:`|^)make ([a-z0-9-]+)")
	makeTarget  = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// The documentation names only make targets that exist.
func TestDocumentedMakeTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllSubmatch(readFile(t, "Makefile"), -1) {
		targets[string(match[1])] = true
	}
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/quickstart.md", "docs/custom-distribution.md"} {
		for _, match := range makeCommand.FindAllSubmatch(readFile(t, file), -1) {
			assert.True(t, targets[string(match[1])], "%s names make %s", file, match[1])
		}
	}
}

var pastedImport = regexp.MustCompile(`(?m)^ +import: ` + regexp.QuoteMeta(ownModule) + `/(\S+)$`)

// The lines that users paste into a manifest of their own name every component
// of ours, and nothing else.
func TestPastedImportsAreOurComponents(t *testing.T) {
	pasted := map[string]bool{}
	for _, match := range pastedImport.FindAllSubmatch(readFile(t, "docs", "custom-distribution.md"), -1) {
		pasted[string(match[1])] = true
	}
	for _, entry := range readManifest(t).Converters {
		delete(pasted, strings.TrimPrefix(entry.Import, ownModule+"/"))
	}
	for kind := range readManifest(t).kinds() {
		for _, dir := range packagesWithFactory(t, kind) {
			assert.True(t, pasted[dir], "docs/custom-distribution.md leaves out %s", dir)
			delete(pasted, dir)
		}
	}
	assert.Empty(t, pasted, "docs/custom-distribution.md names what does not exist")
}

var pastedModule = regexp.MustCompile(`(?m)^ +- gomod: (\S+) (v\S+)$`)

// A manifest in a document has the versions that are known to work together.
func TestPastedModulesHaveTheVersionsOfTheManifest(t *testing.T) {
	versions := map[string]string{}
	for _, entry := range readManifest(t).all() {
		path, version := entry.module()
		versions[path] = version
	}
	for _, match := range pastedModule.FindAllSubmatch(readFile(t, "docs", "custom-distribution.md"), -1) {
		assert.Equal(t, versions[string(match[1])], string(match[2]), "%s in docs/custom-distribution.md", match[1])
	}
}
