// SPDX-License-Identifier: Apache-2.0

// Command lockstep is the companion of the collector: it analyses files without
// one (analyze), and runs a small one in its own process (run), if need be beside
// a job of its own making (demo).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit statuses.
const (
	exitNothing  = 0 // nothing found, or done
	exitFailed   = 1 // could not run
	exitUnusable = 2 // wrong usage, or nothing could be analysed or compared
	exitFindings = 3
	// exitInterrupted is what shells say of a program that SIGINT ended.
	exitInterrupted = 128 + 2
	// exitBrokenPipe is what they say of one that SIGPIPE ended.
	exitBrokenPipe = 128 + 13
)

// statusError ends the command with a status; its message, if any, has been
// printed.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	var status statusError
	switch {
	case err == nil:
		return exitNothing
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &failure{}):
		for _, e := range severally(err) {
			_, _ = fmt.Fprintf(stderr, "lockstep: %v\n", e)
		}
		return exitFailed
	}
	// The usage would push the reason off some screens.
	_, _ = fmt.Fprintf(stderr, "lockstep: %v; see `%s --help`\n", err, cmd.CommandPath())
	return exitUnusable
}

// failure is an error of the work itself; every other error is one of usage.
type failure struct{ err error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// severally returns the errors that were joined, each of which is told on a line.
func severally(err error) []error {
	var f failure
	if errors.As(err, &f) {
		if joined, ok := f.err.(interface{ Unwrap() []error }); ok {
			return joined.Unwrap()
		}
	}
	return []error{err}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "lockstep",
		Short: "Find the rank that makes the others wait",
		Long: "Lockstep reads what the ranks of a training job observed, puts them on one timeline,\n" +
			"and says which rank made the others wait, why, and what mending it would save.",
		Version:           versionLine(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), cmd.UsageString())
			return errors.New("which command? got none; want one of those above")
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newAnalyze(), newDemo(), newPreflight(), newRings(), newRun(), newVersion())
	return root
}
