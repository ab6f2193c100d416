// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// entry is one intended difference.
type entry struct {
	input, line *regexp.Regexp
	reason      string
	text        string
	used        bool
}

// listed are the intended differences.
type listed []*entry

func parseListed(text string) (listed, error) {
	var out listed
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 3 || strings.TrimSpace(fields[2]) == "" {
			return nil, fmt.Errorf("read line %d: got %q; want: regexp of the input | regexp of a changed line | reason", n, line)
		}
		e := &entry{reason: strings.TrimSpace(fields[2]), text: line}
		for i, to := range []**regexp.Regexp{&e.input, &e.line} {
			var err error
			if *to, err = regexp.Compile(strings.TrimSpace(fields[i])); err != nil {
				return nil, fmt.Errorf("read line %d: %w", n, err)
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// allows reports whether every changed line of an input is intended. It marks the entries that
// it used.
func (l listed) allows(input string, changed []string) bool {
	all := true
	for _, line := range changed {
		found := false
		for _, e := range l {
			if e.input.MatchString(input) && e.line.MatchString(line) {
				e.used, found = true, true
			}
		}
		all = all && found
	}
	return all
}
