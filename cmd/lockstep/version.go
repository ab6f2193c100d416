package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// collectorModule is the module whose version names the collector's core.
const collectorModule = "go.opentelemetry.io/collector/otelcol"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the command and of its collector",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine is what `version` and --version print.
func versionLine() string {
	return fmt.Sprintf("lockstep %s (collector %s, %s, %s/%s)",
		version(), dependency(collectorModule), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version as the Go tool recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func dependency(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version
			}
		}
	}
	return "(unknown)"
}
