// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// lines of Go in a tree, of all its modules. Those of connectors and receivers are among the written ones.
type lines struct{ written, connectors, receivers, tests, generated int }

var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// countLines counts what git knows of the tree, and new files that it does not ignore.
func countLines(ctx context.Context, dir string) (n lines, err error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return n, fmt.Errorf("list files of %s: %w", dir, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) || name == "" { // removed, and not committed yet
			continue
		}
		if err != nil {
			return n, fmt.Errorf("count lines: %w", err)
		}
		n.add(name, text)
	}
	return n, nil
}

func (n *lines) add(name string, text []byte) {
	count := bytes.Count(text, []byte("\n"))
	switch {
	case generatedHeader.Match(text):
		n.generated += count
	case strings.HasSuffix(name, "_test.go"):
		n.tests += count
	default:
		n.written += count
		switch top, _, _ := strings.Cut(filepath.ToSlash(name), "/"); top {
		case "connector":
			n.connectors += count
		case "receiver":
			n.receivers += count
		}
	}
}
