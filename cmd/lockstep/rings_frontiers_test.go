// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func frontiersText(f ringFrontiers) string {
	var b strings.Builder
	f.write(&b)
	return b.String()
}

func TestRingsCompareHowFarRanksHaveCome(t *testing.T) {
	f, key := newRingFrontiers(), commKey{"job", 0xabc}
	for rank := range int64(4) {
		f.member(key, "0000000000000abc world", rank)
		f.enqueued(key, "AllReduce", rank, 437)
		f.enqueued(key, "Send", rank, uint64(rank))
	}
	assert.Empty(t, frontiersText(f), "all are equal; messages have no common number")

	f.comms[key].numbers["AllReduce"][2] = 435
	f.enqueued(key, "Broadcast", 0, 0)
	said := frontiersText(f)
	assert.Contains(t, said, "communicator 0000000000000abc world, AllReduce: ranks 0, 1 and 3 have enqueued number 437, rank 2 only 435\n")
	assert.Contains(t, said, "Broadcast: rank 0 has enqueued number 0, ranks 1-3 none on record\n")
}

func TestRingsCompareWithinALimit(t *testing.T) {
	f := newRingFrontiers()
	for hash := range uint64(40) {
		key := commKey{"job", hash}
		f.member(key, "a", 0)
		f.member(key, "a", 1)
		f.enqueued(key, "AllReduce", 1, 9)
	}
	said := frontiersText(f)
	assert.Equal(t, maxFrontierLines+2, strings.Count(said, "\n"))
	assert.Contains(t, said, "and 24 more")
}

// A file of an earlier start, or of a second process, is no second rank.
func TestRingsCountEachRankOnce(t *testing.T) {
	f, key := newRingFrontiers(), commKey{"job", 0xabc}
	for _, number := range []uint64{7, 9, 8} {
		f.rings[jobRank{"job", 0}]++
		f.member(key, "abc world", 0)
		f.enqueued(key, "AllReduce", 0, number)
	}
	f.rings[jobRank{"job", 1}]++
	f.member(key, "abc world", 1)
	f.enqueued(key, "AllReduce", 1, 4)
	said := frontiersText(f)
	assert.Contains(t, said, "Several rings of one rank in job job: rank 0 (")
	assert.Contains(t, said, "AllReduce: rank 0 has enqueued number 9, rank 1 only 4\n")
}
