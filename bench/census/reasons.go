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
	if r.evictions, err = reasonsOf(evictionsFile, "package.function"); err != nil {
		return r, fmt.Errorf("read evictions.txt: %w", err)
	}
	return r, nil
}

// reasonsOf reads a text such as maps.txt: a name of the form "package.Type.field", and a reason.
func reasonsOf(text, form string) (map[string]string, error) {
	out := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		name, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if strings.TrimSpace(reason) == "" || strings.Count(name, ".") < strings.Count(form, ".") {
			return nil, fmt.Errorf("read line %d: got %q; want: %s reason", n, strings.TrimSpace(line), form)
		}
		out[name] = strings.TrimSpace(reason)
	}
	return out, nil
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
