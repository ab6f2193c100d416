// SPDX-License-Identifier: Apache-2.0

// Runs keeps the reports of runs on GPUs as lines of docs/gpu/runs.jsonl, and writes
// what the documents report of them: docs/gpu.md and the column of README's status table.
//
//	go run ./gpukit/runs                 writes the documents
//	go run ./gpukit/runs REPORT.json     adds a run before that
package main

//go:generate go run . -root ../..

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	runsFile   = "docs/gpu/runs.jsonl"
	gpuFile    = "docs/gpu.md"
	readmeFile = "README.md"
)

// claimFiles are the documents that claim of GPUs, behind marks.
var claimFiles = []string{
	readmeFile, "docs/live.md", "inject/nccl/README.md", "inject/cupti/README.md", "inject/python/README.md",
	"connector/epochconnector/README.md", "receiver/fleetversionreceiver/README.md", "receiver/ncclrasreceiver/README.md",
	"receiver/flightrecorderreceiver/README.md",
}

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "runs:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	f := flag.NewFlagSet("runs", flag.ContinueOnError)
	f.SetOutput(stderr)
	root := f.String("root", ".", "the repository's `folder`")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 1 {
		return fmt.Errorf("read arguments: got %d reports; want at most one", f.NArg())
	}
	if f.NArg() == 1 {
		if err := add(filepath.Join(*root, runsFile), f.Arg(0)); err != nil {
			return err
		}
	}
	return write(*root)
}

// edits returns what is done to each document.
func (all runs) edits() map[string]func(string) (string, error) {
	edits := map[string]func(string) (string, error){gpuFile: all.document}
	for _, name := range claimFiles {
		edits[name] = all.claims
	}
	return edits
}

// write writes the documents from the runs.
func write(root string) error {
	known, err := read(filepath.Join(root, runsFile))
	if err != nil {
		return err
	}
	for name, edit := range known.edits() {
		path := filepath.Join(root, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read document: %w", err)
		}
		changed, err := edit(string(text))
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if changed == string(text) {
			continue
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			return fmt.Errorf("write document: %w", err)
		}
	}
	return nil
}
