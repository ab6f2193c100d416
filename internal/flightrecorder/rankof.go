// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxRank bounds what is taken for a rank: larger numbers in names are times.
const maxRank = 1 << 20

var (
	// explicitRank finds a rank that calls itself one.
	explicitRank = regexp.MustCompile(`(?i)rank[_-]?(\d+)`)
	numbers      = regexp.MustCompile(`\d+`)
)

// RankOf takes the rank out of a file's name, which is the only place where a dump says
// it: the number behind "rank", else the one at the end of the name, before its extension. The
// prefix is the name in front of the number, which the dumps of one job share. Where two
// numbers can be it, or none, ok is false.
func RankOf(path string) (rank int64, prefix string, ok bool) {
	stem := withoutExtensions(filepath.Base(path))
	at := rankAt(stem)
	if at == nil {
		return 0, "", false
	}
	rank, err := strconv.ParseInt(stem[at[0]:at[1]], 10, 64)
	if err != nil || rank >= maxRank {
		return 0, "", false
	}
	return rank, stem[:at[0]], true
}

// rankAt returns where the rank stands in a name, or nil.
func rankAt(stem string) []int {
	var said []int
	for _, m := range explicitRank.FindAllStringSubmatchIndex(stem, 2) {
		if said != nil || strings.HasSuffix(strings.ToLower(stem[:m[0]]), "local_") {
			return nil
		}
		said = m[2:4]
	}
	if said != nil {
		return said
	}
	all := numbers.FindAllStringIndex(stem, -1)
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	if last[1] != len(stem) {
		return nil
	}
	return last
}

// extensions say how a file is written. What else follows a dot is a part of the name.
var extensions = []string{".json", ".pickle", ".pkl", ".pk", ".pt", ".bin", ".dump", ".trace", ".txt", ".gz", ".zst", ".jsonl"}

func withoutExtensions(name string) string {
	for {
		ext := filepath.Ext(name)
		if !slices.Contains(extensions, strings.ToLower(ext)) || ext == name {
			return name
		}
		name = strings.TrimSuffix(name, ext)
	}
}
