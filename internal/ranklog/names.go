// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// pattern is the name of a log without its rank, its stream and its rotation: logs of one job have few,
// and two logs of one rank with one pattern are of one process, or of one after the other.
type pattern struct{ dir, before, after string }

var (
	// stream is a part of a name that says which stream of a process a log has.
	stream = regexp.MustCompile(`(?i)(^|[_./-])(?:stdout|stderr|out|err|log)([_./-]|$)`)
	// placeOfRank is the rank or node in a pattern.
	placeOfRank = regexp.MustCompile(`(?i)(?:^|[_.-])(?:global_?)?(?:rank|node|worker|n)[_.-]?#|[_.-]?#`)
)

// patternOf finds the pattern of a log, and the number in its place; -1: there is none.
func patternOf(path string) (p pattern, rank int64) {
	dir, name := filepath.Split(filepath.Clean(path))
	dir = filepath.Clean(dir)
	if parent, base := filepath.Split(dir); !strings.ContainsAny(stem(name), "0123456789") {
		if n, called, ok := FolderRank(base); ok {
			return pattern{dir: withoutStream(filepath.Clean(parent)), before: called, after: plainName(name)}, n
		}
	}
	name = plainName(name)
	rank, before, ok := flightrecorder.RankOf(name)
	if !ok {
		return pattern{dir: withoutStream(dir), before: name}, -1
	}
	after := strings.TrimLeft(name[len(before):], "0123456789")
	return pattern{withoutStream(dir), before, after}, rank
}

// plainName is the name of a log without its stream, rotation and extensions.
func plainName(name string) string {
	log, _ := partOf(name)
	return withoutStream(stem(log))
}

// withoutStream is a path without the parts that name a stream.
func withoutStream(path string) string {
	for {
		short := stream.ReplaceAllString(path, "$1")
		if short == path {
			return strings.TrimRight(path, "_.-")
		}
		path = short
	}
}

// whole is a pattern as one text, without digits where they are not to count.
func (p pattern) whole(digits bool) string {
	text := p.before + "#" + p.after
	if !digits {
		text = strings.Map(func(c rune) rune {
			if c >= '0' && c <= '9' {
				return -1
			}
			return c
		}, text)
	}
	return text
}

// label names a job by the parts of a pattern: "a_rank#" is job "a".
func (p pattern) label() string {
	return strings.Trim(placeOfRank.ReplaceAllString(p.before+"#"+p.after, ""), "_.- ")
}
