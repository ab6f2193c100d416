// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// messageLimit is what an OTLP receiver accepts in one message over gRPC by default, in bytes.
const messageLimit = 4 << 20

var yamlBlock = regexp.MustCompile("(?s)```ya?ml\n(.*?\n) *```")

// publishedYAML returns, by where it is, each text in the form of a configuration that a user
// may copy: our configurations, the blocks of the documentation, and the texts of the converters.
func publishedYAML(t *testing.T) map[string]any {
	t.Helper()
	texts := map[string]string{}
	for _, file := range append(filesOf(t, "distro/config/*.yaml"), filesOf(t, "cmd/lockstep/*.yaml")...) {
		texts[file] = string(readFile(t, file))
	}
	for _, file := range markdownFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, block := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
			texts[file+" block "+strconv.Itoa(i+1)] = block[1]
		}
	}
	for _, file := range filesOf(t, "converter/*/*.go") {
		for _, text := range stringLiterals(t, file) {
			texts[file+" "+text] = text
		}
	}
	documents := map[string]any{}
	for name, text := range texts {
		var document any
		// A hint is a sentence, and a block may be an excerpt: neither need be YAML.
		if yaml.Unmarshal([]byte(text), &document) == nil {
			documents[name] = document
		}
	}
	return documents
}

func filesOf(t *testing.T, pattern string) (files []string) {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	require.NoError(t, err)
	for _, match := range matches {
		rel, err := filepath.Rel(root, match)
		require.NoError(t, err)
		if !strings.HasSuffix(rel, "_test.go") {
			files = append(files, rel)
		}
	}
	require.NotEmpty(t, files, pattern)
	return files
}

func stringLiterals(t *testing.T, file string) (literals []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, readFile(t, file), 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			literals = append(literals, text)
		}
		return true
	})
	return literals
}

// components calls visit with each setting of a document whose key is a component's id of that type.
func visitComponents(document any, kind string, visit func(settings map[string]any)) {
	switch node := document.(type) {
	case map[string]any:
		for key, value := range node {
			name, _, _ := strings.Cut(key, "/")
			if settings, ok := value.(map[string]any); ok && name == kind {
				visit(settings)
			}
			visitComponents(value, kind, visit)
		}
	case []any:
		for _, value := range node {
			visitComponents(value, kind, visit)
		}
	}
}

// A published OTLP receiver bounds a request over HTTP as gRPC does by default: confighttp's own
// bound is 20 MiB, before decompression and for each request at once.
func TestPublishedOTLP_OverHTTP_BoundsRequests(t *testing.T) {
	seen := 0
	for name, document := range publishedYAML(t) {
		visitComponents(document, "otlp", func(settings map[string]any) {
			protocols, _ := settings["protocols"].(map[string]any)
			http, served := protocols["http"]
			if !served {
				return
			}
			seen++
			bounds, _ := http.(map[string]any)
			assert.Equal(t, messageLimit, bounds["max_request_body_size"], "%s: max_request_body_size of otlp over http", name)
		})
	}
	assert.Positive(t, seen)
}

// Lines are written by json_lines: file loses lines that it has accepted to a kill, and glues others
// to a cut one.
func TestPublishedFiles_AreOfWholeLines(t *testing.T) {
	for _, name := range filesOf(t, "distro/config/*.yaml") {
		var c struct {
			Exporters map[string]any `yaml:"exporters"`
		}
		require.NoError(t, yaml.Unmarshal(readFile(t, name), &c), name)
		for id := range c.Exporters {
			kind, _, _ := strings.Cut(id, "/")
			assert.NotEqual(t, "file", kind, "%s: exporter %s", name, id)
		}
	}
}

// What others send must not fill the disk that queues need: the files of lines are bounded.
func TestPublishedFiles_AreRotated(t *testing.T) {
	seen := 0
	for _, name := range filesOf(t, "distro/config/*.yaml") {
		var c struct {
			Exporters map[string]struct {
				Rotation struct {
					Megabytes int `yaml:"max_megabytes"`
					Backups   int `yaml:"max_backups"`
				} `yaml:"rotation"`
			} `yaml:"exporters"`
		}
		require.NoError(t, yaml.Unmarshal(readFile(t, name), &c), name)
		for id, exporter := range c.Exporters {
			if kind, _, _ := strings.Cut(id, "/"); kind == "json_lines" {
				seen++
				assert.Positive(t, exporter.Rotation.Megabytes, "%s: max_megabytes of %s", name, id)
				assert.Positive(t, exporter.Rotation.Backups, "%s: max_backups of %s", name, id)
			}
		}
	}
	assert.Positive(t, seen)
}

// Every published configuration that reads rings continues, after a restart, where the rings were read to.
func TestPublishedRings_AreResumed(t *testing.T) {
	seen := 0
	for _, name := range filesOf(t, "distro/config/*.yaml") {
		var c struct {
			Receivers map[string]struct {
				Storage string `yaml:"storage"`
			} `yaml:"receivers"`
			Service struct {
				Extensions []string `yaml:"extensions"`
			} `yaml:"service"`
		}
		require.NoError(t, yaml.Unmarshal(readFile(t, name), &c), name)
		if rings, ok := c.Receivers["rank_events"]; ok {
			seen++
			assert.Contains(t, c.Service.Extensions, rings.Storage, "%s: storage of rank_events", name)
		}
	}
	assert.Positive(t, seen)
}

// ours are the conditions that drop the logs that are no events of Lockstep.
var ours = regexp.MustCompile(`^not IsMatch\(log\.event_name, "\^lockstep\\\\\."\)$|^log\.event_name != "lockstep\.[a-z.]+"$`)

// ofType reports whether the id of a component is of a type.
func ofType(kind string) func(id string) bool {
	return func(id string) bool {
		is, _, _ := strings.Cut(id, "/")
		return is == kind
	}
}

// eventPipelines returns the pipelines of a configuration that write what an OTLP receiver takes to a file
// of lines, and whether each drops the logs of others.
func eventPipelines(t *testing.T, config []byte) map[string]bool {
	t.Helper()
	var c struct {
		Processors map[string]struct {
			Logs struct {
				Records []string `yaml:"log_record"`
			} `yaml:"logs"`
		} `yaml:"processors"`
		Service struct {
			Pipelines map[string]struct {
				Receivers, Processors, Exporters []string
			} `yaml:"pipelines"`
		} `yaml:"service"`
	}
	require.NoError(t, yaml.Unmarshal(config, &c))
	found := map[string]bool{}
	for id, p := range c.Service.Pipelines {
		if slices.ContainsFunc(p.Receivers, ofType("otlp")) && slices.ContainsFunc(p.Exporters, ofType("json_lines")) {
			found[id] = slices.ContainsFunc(p.Processors, func(processor string) bool {
				return slices.ContainsFunc(c.Processors[processor].Logs.Records, ours.MatchString)
			})
		}
	}
	return found
}

// Any service may send logs to a port of OTLP. The file of events is for events of Lockstep.
func TestPublishedEvents_FromOTLP_AreOfLockstepAlone(t *testing.T) {
	seen := 0
	for _, name := range filesOf(t, "distro/config/*.yaml") {
		for id, drops := range eventPipelines(t, readFile(t, name)) {
			seen++
			assert.True(t, drops, "%s: pipeline %s writes logs of others", name, id)
		}
	}
	assert.Positive(t, seen)
}

func TestEventPipelines_OfNamedComponents_AreFound(t *testing.T) {
	assert.Equal(t, map[string]bool{"logs/all": false, "logs/ours": true}, eventPipelines(t, []byte(`
processors:
  filter/open:
    logs:
      log_record: ['not IsMatch(log.event_name, "^lockstep\\.")']
service:
  pipelines:
    logs/all: {receivers: [otlp/agents], exporters: [json_lines/other]}
    logs/ours: {receivers: [otlp], processors: [filter/open], exporters: [json_lines]}
    logs/findings: {receivers: [findings], exporters: [json_lines/findings]}
    logs/sent: {receivers: [otlp], exporters: [otlp_grpc]}
`)))
}
