// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"bytes"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// pickleProto begins every pickle since protocol 2.
const pickleProto = 0x80

// MayBeDump reports whether content begins as a dump does: who names a file like a dump need
// not have written one.
func MayBeDump(data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	return len(text) == 0 || data[0] == pickleProto || text[0] == '{' || text[0] == '['
}

// OwnRank finds the rank that wrote a dump, which does not say it: a process has only groups
// of which it is a member, so that it is the one that they all have in common.
func OwnRank(groups []flightrecorder.Group) (int64, bool) {
	var common []int64
	for i := range groups {
		ranks := groups[i].Ranks
		switch {
		case len(ranks) == 0:
		case common == nil:
			common = slices.Clone(ranks)
		default:
			in := make(map[int64]bool, len(ranks))
			for _, r := range ranks {
				in[r] = true
			}
			common = slices.DeleteFunc(common, func(r int64) bool { return !in[r] })
		}
	}
	if len(common) != 1 {
		return 0, false
	}
	return common[0], true
}
