// SPDX-License-Identifier: Apache-2.0

// Package hintconverter prints what to do about components that a configuration names
// and the running collector does not hold. It changes no configuration: upstream's own
// error about the unknown component follows and decides.
package hintconverter

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// NewFactory returns the factory that a manifest of the collector builder lists under
// "converters".
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter {
		return &converter{out: os.Stderr, contents: running()}
	})
}

// converter prints to out, not to the collector's logger: "validate" drops the log of a
// collector that does not start.
type converter struct {
	out      io.Writer
	contents contents
}

// Convert prints one line for each component in conf that this binary lacks and a hint
// is known for. It returns no error.
func (c *converter) Convert(_ context.Context, conf *confmap.Conf) error {
	for _, section := range sections {
		for _, id := range ids(conf, section) {
			name, _, _ := strings.Cut(id, "/")
			if h, ok := find(section, name); ok && !c.contents.holds(h) {
				fmt.Fprintf(c.out, "Hint: %s: %q: %s\n", section, id, h.text())
			}
		}
	}
	return nil
}

// ids returns the sorted component ids of one section of conf.
func ids(conf *confmap.Conf, section string) []string {
	components, _ := conf.Get(section).(map[string]any)
	names := make([]string, 0, len(components))
	for name := range components {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// contents is what a collector binary is compiled from.
type contents struct {
	// agent is true for the lean collector, whose receivers come from the same module as
	// the components that it lacks.
	agent   bool
	modules map[string]bool
}

// agentModule is dist.module of builder-config-agent.yaml.
const agentModule = "github.com/lockstep-otel/lockstep/distro/agent"

// running returns the contents of this process's binary, as the Go linker recorded them.
func running() contents {
	c := contents{modules: map[string]bool{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return c
	}
	c.agent = info.Main.Path == agentModule
	for _, module := range info.Deps {
		c.modules[module.Path] = true
	}
	return c
}

// holds reports whether the component of h is compiled in.
func (c contents) holds(h hint) bool {
	if h.module == own {
		return !c.agent
	}
	return c.modules[h.module]
}
