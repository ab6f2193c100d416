// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

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

// versionLine returns what `version` and --version print.
func versionLine() string {
	return fmt.Sprintf("lockstep %s%s (collector %s, %s, %s/%s)",
		version(), commit(), dependency(collectorModule), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version as the Go tool recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// commit returns the commit and its date as the Go tool recorded them, or nothing.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return describe(info.Settings)
}

// commitDigits is the length of an abbreviated commit, as in the Go tool's pseudo-versions.
const commitDigits = 12

func describe(settings []debug.BuildSetting) string {
	recorded := map[string]string{}
	for _, s := range settings {
		recorded[s.Key] = s.Value
	}
	revision := recorded["vcs.revision"]
	if revision == "" {
		return ""
	}
	text := fmt.Sprintf(" commit %.*s", commitDigits, revision)
	if date, _, ok := strings.Cut(recorded["vcs.time"], "T"); ok {
		text += " of " + date
	}
	if recorded["vcs.modified"] == "true" {
		text += ", modified"
	}
	return text
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
