// SPDX-License-Identifier: Apache-2.0

// Package kernelname owns what the name of a kernel says of what it does: a name to
// show, and one that is the same whatever tile sizes a library chose.
package kernelname

import (
	"regexp"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// MaxBytes bounds a name as shown. Kernel names of templated libraries run
// to thousands of bytes; what tells them apart mostly stands in the first few hundred.
const MaxBytes = cut.MaxLabel

// Shown returns a kernel's name without its parameter list.
func Shown(raw string) string {
	s := strings.TrimPrefix(raw, "void ")
	return Clip(strings.TrimSpace(stripBrackets(s, '(', ')')))
}

// Clip returns a name of at most MaxBytes and valid text. What it cuts it replaces by a digest, so that
// long names stay distinct.
func Clip(s string) string { return cut.Text(s, MaxBytes) }

var (
	// tuned are parts of a name that an autotuner or a library's heuristic
	// chooses: tile sizes, stages, warps, and Triton's trailing numbers.
	tuned = regexp.MustCompile(`_(?:\d+x\d+(?:x\d+)*|tilesize\d+(?:x\d+)*|stage\d+|stages_\d+x\d+|warpsize\d+(?:x\d+)*|nthreads\d+|num_warps\d+|unroll\d+|split[kK]?\d+)(_|$)`)
	// suffix is the number of a generated kernel and Triton's signature.
	suffix = regexp.MustCompile(`(?:_(?:\d+[\dcde]*|__\d+))+$`)
)

// Key returns the name for comparison: no namespaces that say nothing, no
// template arguments, parameters or tuning.
func Key(raw string) string {
	s := strings.TrimPrefix(raw, "void ")
	s = strings.ReplaceAll(s, "(anonymous namespace)::", "")
	s = stripBrackets(stripBrackets(s, '<', '>'), '(', ')')
	for {
		t := tuned.ReplaceAllString(s, "$1")
		if t == s {
			break
		}
		s = t
	}
	if t := suffix.ReplaceAllString(s, ""); t != "" {
		s = t
	}
	return Clip(strings.TrimSpace(s))
}

// stripBrackets removes what stands in brackets, save "(anonymous namespace)"
// and the names of operators.
func stripBrackets(s string, open, closing byte) string {
	if strings.IndexByte(s, open) <= 0 || strings.Contains(s, "operator") {
		return s
	}
	const anonymous = "(anonymous namespace)"
	out := make([]byte, 0, len(s))
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case depth == 0 && c == '(' && strings.HasPrefix(s[i:], anonymous):
			out = append(out, anonymous...)
			i += len(anonymous) - 1
		case c == open:
			depth++
		case c == closing && depth > 0:
			depth--
		case depth == 0:
			out = append(out, c)
		}
	}
	if depth > 0 || len(out) == 0 {
		return s
	}
	return string(out)
}
