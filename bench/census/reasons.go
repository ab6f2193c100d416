// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var (
	//go:embed maps.txt
	mapsFile string
	//go:embed evictions.txt
	evictionsFile string
)

// reasons say why something that is counted may be where it is.
type reasons struct{ maps, evictions map[string]string }

func readReasons() (r reasons, err error) {
	if r.maps, err = reasonsOf(mapsFile, "package.Type.field"); err != nil {
		return r, fmt.Errorf("read maps.txt: %w", err)
	}
	if r.evictions, err = reasonsOf(evictionsFile, "package.function Type.field"); err != nil {
		return r, fmt.Errorf("read evictions.txt: %w", err)
	}
	return r, nil
}

// reasonsOf reads a text such as maps.txt: a name of the form "package.Type.field", or of several words, and
// a reason.
func reasonsOf(text, form string) (map[string]string, error) {
	out := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name, reason := splitAt(words, strings.Count(form, " ")+1)
		if reason == "" || !alike(name, form) {
			return nil, fmt.Errorf("read line %d: got %q; want: %s reason", n, strings.TrimSpace(line), form)
		}
		out[name] = reason
	}
	return out, nil
}

func splitAt(words []string, n int) (before, after string) {
	n = min(n, len(words))
	return strings.Join(words[:n], " "), strings.Join(words[n:], " ")
}

// alike reports whether each word of a name has as many dots as that of the form, or more.
func alike(name, form string) bool {
	words := strings.Fields(name)
	for i, w := range strings.Fields(form) {
		if i >= len(words) || strings.Count(words[i], ".") < strings.Count(w, ".") {
			return false
		}
	}
	return true
}

// others returns the names that have a reason and are not used.
func others(reasons map[string]string, used map[string]bool) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !used[name] {
			out = append(out, name)
		}
	}
	return out
}
