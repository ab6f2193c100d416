// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"strconv"
	"strings"
)

// maxToken bounds a number or a version in a line, in bytes.
const maxToken = 64

// digits cuts a whole number from the front of a text; empty where there is none.
func digits(s string) (number, rest string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > maxToken {
		return "", s
	}
	return s[:n], s[n:]
}

func whole(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// version cuts a version from the front of a text, as 550.54.14 or 1.0-9639; empty where there is
// none.
func version(s string) (v, rest string) {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.' || s[n] == '-') {
		n++
	}
	if n > maxToken {
		return "", s
	}
	return strings.TrimRight(s[:n], ".-"), s[n:] // the sentence ends behind it
}

// versionIn finds the first version behind the word.
func versionIn(s string) (string, bool) {
	_, rest, ok := strings.Cut(s, "version ")
	if !ok {
		return "", false
	}
	v, _ := version(rest)
	return v, v != ""
}
