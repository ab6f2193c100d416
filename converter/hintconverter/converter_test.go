// SPDX-License-Identifier: Apache-2.0

package hintconverter

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

func convert(t *testing.T, c contents, text string) string {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	var out bytes.Buffer
	conf := confmap.NewFromStringMap(raw)
	before := conf.ToStringMap()
	require.NoError(t, (&converter{out: &out, contents: c}).Convert(t.Context(), conf))
	require.Equal(t, before, conf.ToStringMap(), "the configuration is not changed")
	return out.String()
}

func TestConvert_AbsentComponents_PrintsALineEach(t *testing.T) {
	got := convert(t, contents{}, `
receivers:
  httpcheck/front: {targets: [{endpoint: "http://localhost"}]}
  otlp:
exporters:
  jaeger: {endpoint: localhost:14250}
connectors:
  routing:
`)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], `receivers: "httpcheck/front": `)
	assert.Contains(t, lines[0], "blackbox exporter")
	assert.Contains(t, lines[1], `exporters: "jaeger": `)
	assert.Contains(t, lines[1], "otlp_grpc")
	assert.Contains(t, lines[2], `connectors: "routing": `)
	assert.Contains(t, lines[2], "gomod: "+contrib+"connector/routingconnector")
}

func TestConvert_CompiledIn_PrintsNothing(t *testing.T) {
	text := "connectors:\n  routing:\nreceivers:\n  jaeger:\n"
	held := contents{modules: map[string]bool{
		contrib + "connector/routingconnector": true,
		contrib + "receiver/jaegerreceiver":    true,
	}}
	assert.Empty(t, convert(t, held, text))
}

func TestConvert_Agent_NamesTheFullCollector(t *testing.T) {
	text := "connectors:\n  straggler:\nprocessors:\n  straggler/live:\n"
	assert.Empty(t, convert(t, contents{}, text))

	got := convert(t, contents{agent: true}, text)
	assert.Equal(t, 2, strings.Count(got, "Run otelcol-lockstep, or send the data to one."))

	got = convert(t, contents{agent: true}, "receivers:\n  kubeletstats:\n")
	assert.True(t, strings.HasSuffix(got, "Run otelcol-lockstep.\n"), "a receiver has nothing to send: %s", got)
}

// Sections that are empty or of another type are upstream's to refuse.
func TestConvert_Malformed_PrintsNothing(t *testing.T) {
	for _, text := range []string{"{}", "receivers:", "receivers: 3", "exporters: [jaeger]"} {
		assert.Empty(t, convert(t, contents{}, text), text)
	}
}

// manifest is the part of a builder manifest that lists components.
type manifest map[string][]struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
}

// packages returns the import path of every component of one section.
func packages(t *testing.T, file, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata.Root(t), file))
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, yaml.Unmarshal(text, &all))
	var m manifest
	part, err := yaml.Marshal(map[string]any{section: all[section]})
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(part, &m))
	var paths []string
	for _, c := range m[section] {
		path, _, _ := strings.Cut(c.GoMod, " ")
		if c.Import != "" {
			path = c.Import
		}
		paths = append(paths, path)
	}
	return paths
}

// typeOf returns the component type that our import paths end in, such as
// clock_skew for processor/clockskewprocessor.
func typeOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata.Root(t), strings.TrimPrefix(path, own), "metadata.yaml"))
	require.NoError(t, err)
	var metadata struct {
		Type string `yaml:"type"`
	}
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	return metadata.Type
}

func TestHints_FullManifestButNotAgent_AllHaveOne(t *testing.T) {
	for _, section := range sections {
		lean := packages(t, "builder-config-agent.yaml", section)
		complete := packages(t, "builder-config.yaml", section)
		require.NotEmpty(t, complete, section)
		for _, path := range complete {
			matches := func(h hint) bool {
				if h.section != section || !h.full {
					return false
				}
				if strings.HasPrefix(path, own+"/") {
					return h.module == own && h.names[0] == typeOf(t, path)
				}
				return h.module == path
			}
			assert.Equal(t, !slices.Contains(lean, path), slices.ContainsFunc(hints, matches), path)
		}
	}
}

func TestHints_NotFull_AreInNoManifest(t *testing.T) {
	for _, h := range hints {
		if !h.full && h.module != "" {
			assert.NotContains(t, packages(t, "builder-config.yaml", h.section), h.module)
		}
		assert.Contains(t, sections, h.section)
		if h.module == "" {
			assert.NotEmpty(t, h.instead, h.names)
		}
	}
}

// The contents of a real collector are e2e's to test: a test binary has no list of modules.
func TestFactory_Create_ConvertsAnEmptyConfiguration(t *testing.T) {
	require.NoError(t, NewFactory().Create(confmap.ConverterSettings{}).Convert(t.Context(), confmap.New()))
}
