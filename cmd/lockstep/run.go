// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/otelcol"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lockstep-otel/lockstep/internal/replay"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/report/terminal"
)

func newRun() *cobra.Command {
	return &cobra.Command{
		Use:   "run CONFIG...",
		Short: "Run a small collector in this process; it ends when its files have been read",
		Long: "Runs an OpenTelemetry collector of few components:\n" + componentsText() +
			"\nCONFIG is a file or a URI (file:, env:, yaml:); later ones are merged into earlier ones.\n\n" +
			"Where files are read once, the collector shuts down when all of them have flowed; else on\n" +
			"SIGINT or SIGTERM. It ends by printing the findings that reached an exporter. Where a pipeline of\n" +
			"logs in CONFIG has an exporter `report` to stdout or stderr, that prints them as they come, and the\n" +
			"end has only how much was read.\n\n" +
			"Exit status: 0 done, 1 the collector failed or its files held nothing, 2 wrong usage.",
		Example: "  lockstep run distro/config/replay.yaml\n" +
			"  LOCKSTEP_TRACES=/traces/job7 lockstep run distro/config/replay.yaml",
		Args: somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCollector(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
}

// componentsText lists the components by kind, from the factories themselves, so that none is left out.
func componentsText() string {
	f, err := components(newTap())
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	return componentsOf("receivers", f.Receivers) + componentsOf("processors", f.Processors) +
		componentsOf("connectors", f.Connectors) + componentsOf("extensions", f.Extensions) + componentsOf("exporters", f.Exporters)
}

func componentsOf[F any](kind string, of map[component.Type]F) string {
	const width = 100
	var names []string
	for t := range of {
		names = append(names, t.String())
	}
	slices.Sort(names)
	var text strings.Builder
	line := fmt.Sprintf("  %-11s", kind)
	for i, name := range names {
		if i > 0 && len(line)+len(name)+3 > width {
			text.WriteString(line + "\n")
			line = strings.Repeat(" ", 13)
		}
		line += " " + name
		if i < len(names)-1 {
			line += ","
		}
	}
	return text.String() + line + "\n"
}

// runCollector runs the collector to its end and prints what it found.
func runCollector(ctx context.Context, uris []string, stdout io.Writer) error {
	if ctx == nil {
		ctx = context.Background()
	}
	replay.Reset()
	seen := newTap()
	col, err := otelcol.NewCollector(settings(uris, seen))
	if err != nil {
		return failure{fmt.Errorf("create collector: %w", err)}
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan bool, 1)
	go func() { ended <- shutdownAtEnd(ctx, col) }()
	err = col.Run(ctx)
	stop()
	finite := <-ended
	if err != nil {
		err = failure{fmt.Errorf("run collector: %w%s", err, lacking(err))}
		if findings, _, _ := seen.result(); len(findings) > 0 { // the end failed, and what came before is a result
			err = errors.Join(err, seen.conclude(stdout, terminal.StyleOf(stdout, os.Getenv), finite))
		}
		return err
	}
	return seen.conclude(stdout, terminal.StyleOf(stdout, os.Getenv), finite)
}

// lacking advises where a configuration names components that are not among
// those of `lockstep run`. The collector's error has no type to tell it by.
func lacking(err error) string {
	if !strings.Contains(err.Error(), "unknown type:") {
		return ""
	}
	return "\n\n`lockstep run` has few components (see `lockstep run --help`). The full collector has more," +
		" and says what it lacks:\n  otelcol-lockstep validate --config CONFIG"
}

func settings(uris []string, seen *tap) otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{
			Command:     "lockstep",
			Description: "Lockstep's companion command",
			Version:     version(),
		},
		// A stack of this program tells nobody what is wrong with their files.
		LoggingOptions: []zap.Option{zap.AddStacktrace(zapcore.DPanicLevel)},
		Factories:      func() (otelcol.Factories, error) { return components(seen) },
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				URIs: uris,
				ProviderFactories: []confmap.ProviderFactory{
					fileprovider.NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory(),
				},
				ConverterFactories: []confmap.ConverterFactory{reporting{seen}.factory()},
				DefaultScheme:      "env",
			},
		},
	}
}

// shutdownAtEnd shuts the collector down when all finite input has been read,
// and reports whether that is why it ended. What was read has been accepted
// downstream by then, so that the flush of the shutdown completes it.
func shutdownAtEnd(ctx context.Context, col *otelcol.Collector) bool {
	select {
	case <-ctx.Done():
		return false
	case <-replay.Done():
		col.Shutdown()
		return true
	}
}

func noFinding(finite bool) string {
	text := "No finding reached an exporter."
	if finite {
		text += " `lockstep analyze` on the same files shows how that was judged."
	}
	return text
}

// conclude prints the findings, most costly first, or that there are none.
func (t *tap) conclude(w io.Writer, style report.Style, finite bool) error {
	findings, spans, ranks := t.result()
	printed := t.shown == (component.ID{}) // an exporter of a pipeline prints findings on the terminal
	if spans == 0 && len(findings) == 0 {
		if printed && !finite { // findings can come of log records
			return nil
		}
		_, _ = fmt.Fprintln(w, "Nothing was read: no operation came from any receiver.")
		if finite {
			return statusError(exitFailed)
		}
		return nil
	}
	_, _ = fmt.Fprintf(w, "Read %d operations of %d ranks.\n", spans, ranks)
	if printed {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	if len(findings) == 0 {
		_, _ = fmt.Fprintln(w, noFinding(finite))
		return nil
	}
	if err := report.Findings(w, findings, style); err != nil {
		return failure{err}
	}
	return nil
}
