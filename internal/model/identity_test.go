// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The expected values were computed with Python's hashlib from the words of the
// data model, not by this package:
//
//	h = lambda b: hashlib.sha256(b).digest()
//	trace = h(b"inc\x0042")[:16]
//	op = h(trace + b"\x007\x0020\x00all_reduce\x003")[:8]
func TestKnownIdentities(t *testing.T) {
	trace := StepTraceID("inc", 42)
	hexOf := func(s SpanID) string { return hex.EncodeToString(s[:]) }
	incident := IncidentTraceID("inc", "i1")

	assert.Equal(t, "64c9e21523a6f585d05a4ed9ac403563", hex.EncodeToString(trace[:]))
	assert.Equal(t, "dabfef77e368faabac1f5b48037d5b5e", hex.EncodeToString(incident[:]))
	assert.Equal(t, "f3faf7ce07ee14f4", hexOf(OpSpanID(trace, 7, 20, "all_reduce", 3)))
	assert.Equal(t, "9c10d44abf1c31a0", hexOf(StepSpanID(trace, 7)))
	assert.Equal(t, "1023ece4f6cd7a5b", hexOf(RootSpanID(trace)))
	assert.Equal(t, "2d7a7b617f2addc1", Incarnation(World{CommHash: "0xdeadbeef"}))
	assert.Equal(t, "d125ea38b6d2b7d4", Incarnation(World{Launcher: []string{"run1", "1234"}, Restart: 2}))
	assert.Equal(t, "922f31656975418e", RanksDigest([]int64{0, 1, 2, 10}))
	assert.Equal(t, "a4fd723ee062c0f2", FindingID("inc", FindingStraggler, "rank 7", 1))
}

func TestIncarnationPrefersTheCommunicator(t *testing.T) {
	seen := Incarnation(World{CommHash: "h", Launcher: []string{"a"}, Restart: 1})
	assert.Equal(t, Incarnation(World{CommHash: "h"}), seen)
	assert.NotEqual(t, Incarnation(World{Launcher: []string{"a"}}), Incarnation(World{Launcher: []string{"a"}, Restart: 1}))
	assert.NotEqual(t, Incarnation(World{Launcher: []string{"ab"}}), Incarnation(World{Launcher: []string{"a", "b"}}))
}

func TestDigestKnowsOrder(t *testing.T) {
	assert.NotEqual(t, RanksDigest([]int64{0, 1}), RanksDigest([]int64{1, 0}))
	assert.NotEqual(t, RanksDigest([]int64{1, 2}), RanksDigest([]int64{12}))
}

func TestSpanIDsDiffer(t *testing.T) {
	trace := StepTraceID("inc", 1)
	seen := map[SpanID]string{}
	add := func(name string, id SpanID) {
		assert.NotContains(t, seen, id, "%s and %s", name, seen[id])
		seen[id] = name
	}
	add("base", OpSpanID(trace, 1, 2, "k", 3))
	add("rank", OpSpanID(trace, 2, 2, "k", 3))
	add("lane", OpSpanID(trace, 1, 3, "k", 3))
	add("key", OpSpanID(trace, 1, 2, "k2", 3))
	add("seq", OpSpanID(trace, 1, 2, "k", 4))
	add("digits move", OpSpanID(trace, 12, 2, "k", 3))
	add("trace", OpSpanID(StepTraceID("inc", 2), 1, 2, "k", 3))
	add("step", StepSpanID(trace, 1))
	add("root", RootSpanID(trace))
}

func TestRefUsesTheComparisonKey(t *testing.T) {
	r := Rank{Incarnation: "inc", Rank: 7}
	op := Op{Kind: KindCollective, Name: "ncclDevKernel", Key: "all_reduce", Seq: 3, Step: Some(int64(42)), Stream: Some(int64(20)), ThreadID: Some(int64(9))}
	trace := StepTraceID("inc", 42)
	assert.Equal(t, SpanRef{trace, OpSpanID(trace, 7, 20, "all_reduce", 3)}, r.Ref(&op))
	assert.Equal(t, "64c9e21523a6f585d05a4ed9ac403563-f3faf7ce07ee14f4", r.Ref(&op).String())
	op.Kind = KindStep
	assert.Equal(t, SpanRef{trace, StepSpanID(trace, 7)}, r.Ref(&op))
}
