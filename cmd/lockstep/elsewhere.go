// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"io/fs"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/regular"
)

// inspectorKey is in the first line of every log of NCCL Inspector.
const inspectorKey = `"inspector_output_format_version"`

// elsewhere says what reads a file that is of none of our formats; empty where nothing
// that we know does.
func elsewhere(path string, info fs.FileInfo) string {
	switch {
	case !info.Mode().IsRegular():
	case strings.HasSuffix(path, ".ring"):
		return "rings are read by `lockstep rings`, and live by a collector (docs/live.md)"
	case begins(path, inspectorKey):
		return "logs of NCCL Inspector are read by a collector (distro/config/inspector.yaml)"
	}
	return ""
}

// begins reports whether a file has the text in its first few KiB.
func begins(path, text string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	return err == nil && bytes.Contains(head, []byte(text))
}
