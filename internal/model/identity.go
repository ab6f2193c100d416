// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// TraceID is the identity of a step over all ranks.
type TraceID [16]byte

// SpanID is the identity of an operation inside a trace.
type SpanID [8]byte

// SpanRef points at one span.
type SpanRef struct {
	Trace TraceID
	Span  SpanID
}

// String renders the reference as "traceid-spanid" in hex.
func (r SpanRef) String() string {
	var b [2*len(r.Trace) + 1 + 2*len(r.Span)]byte
	hex.Encode(b[:], r.Trace[:])
	b[2*len(r.Trace)] = '-'
	hex.Encode(b[2*len(r.Trace)+1:], r.Span[:])
	return string(b[:])
}

// ParseSpanRef reads what [SpanRef.String] returns, and reports whether the text is one.
func ParseSpanRef(text string) (r SpanRef, ok bool) {
	trace, span, found := strings.Cut(text, "-")
	ok = found && decodeID(r.Trace[:], trace) && decodeID(r.Span[:], span)
	return r, ok
}

func decodeID(to []byte, s string) bool {
	if len(s) != hex.EncodedLen(len(to)) {
		return false
	}
	_, err := hex.Decode(to, []byte(s))
	return err == nil
}

// RootRank stands for the whole job where a span id needs a rank: the root of a
// step belongs to no rank.
const RootRank int64 = -1

const (
	stepKey   = "step"
	separator = 0x00
	// digestLen is the number of hex digits of an identity that people read
	// and compare: 16 digits are 64 bits, so that a collision among a million
	// jobs has a probability under 1e-7.
	digestLen = 16
)

// StepTraceID returns the trace of a step: the first 16 bytes of
// SHA-256(incarnation 0x00 step), the step in decimal ASCII.
func StepTraceID(incarnation string, step int64) TraceID {
	return traceID(cut.Bytes(incarnation, cut.MaxName), strconv.FormatInt(step, 10))
}

// IncidentTraceID returns the trace of what belongs to no step: the first 16
// bytes of SHA-256(incarnation 0x00 "incident" 0x00 incident).
func IncidentTraceID(incarnation, incident string) TraceID {
	return traceID(cut.Bytes(incarnation, cut.MaxName), "incident", incident)
}

func traceID(parts ...string) (id TraceID) {
	sum := hashParts(parts...)
	copy(id[:], sum[:])
	return id
}

// OpSpanID returns the first 8 bytes of SHA-256 of (trace id, rank, stream,
// key, seq): the trace id raw, each other part behind 0x00, numbers in decimal
// ASCII. Receivers that see the same operation agree on it. A key of more than
// cut.MaxName bytes counts as it is cut there, and so does an incarnation.
func OpSpanID(trace TraceID, rank, lane int64, key string, seq int64) (id SpanID) {
	var buf [128]byte
	b := append(buf[:0], trace[:]...)
	b = strconv.AppendInt(append(b, separator), rank, 10)
	b = strconv.AppendInt(append(b, separator), lane, 10)
	b = append(append(b, separator), cut.Bytes(key, cut.MaxName)...)
	b = strconv.AppendInt(append(b, separator), seq, 10)
	sum := sha256.Sum256(b)
	copy(id[:], sum[:])
	return id
}

// unstepped stands for the incident id where an operation belongs to no step
// and to no incident either.
const unstepped = "unstepped"

// Trace returns the trace of an operation of the given rank.
func (r *Rank) Trace(op *Op) TraceID {
	if op.Step.OK {
		return StepTraceID(r.Incarnation, op.Step.V)
	}
	return IncidentTraceID(r.Incarnation, unstepped)
}

// Ref returns the span of an operation of the given rank.
func (r *Rank) Ref(op *Op) SpanRef {
	t := r.Trace(op)
	if op.Kind == KindStep {
		return SpanRef{Trace: t, Span: StepSpanID(t, r.Rank)}
	}
	return SpanRef{Trace: t, Span: OpSpanID(t, r.Rank, op.Lane(), op.ComparisonKey(), op.Seq)}
}

// StepSpanID returns the span of one rank's step, the parent of its operations.
func StepSpanID(trace TraceID, rank int64) SpanID {
	return OpSpanID(trace, rank, 0, stepKey, 0)
}

// RootSpanID returns the span of the whole step, the parent of every rank's.
func RootSpanID(trace TraceID) SpanID { return StepSpanID(trace, RootRank) }

// World is what is known of a job's life, from which its incarnation follows.
type World struct {
	CommHash string // hash of the world communicator, where one was seen
	// Launcher holds the launcher's ids in a fixed order, e.g. the torchelastic
	// run id or the Slurm job id. Alone they reset on requeue.
	Launcher []string
	Restart  int64
}

// Incarnation names one life of one job: the hash of the world communicator
// where one is seen, else of launcher ids and restart count.
func Incarnation(w World) string {
	if w.CommHash != "" {
		return shortDigest("comm", w.CommHash)
	}
	parts := append([]string{"launcher"}, w.Launcher...)
	return shortDigest(append(parts, strconv.FormatInt(w.Restart, 10))...)
}

// RanksDigest is lockstep.comm.digest: the hash of the ordered global ranks.
func RanksDigest(ranks []int64) string {
	parts := make([]string, len(ranks))
	for i, r := range ranks {
		parts[i] = strconv.FormatInt(r, 10)
	}
	return shortDigest(strings.Join(parts, ","))
}

// FindingID hashes incarnation, kind, coarse place and the number with which the episode began.
func FindingID(incarnation, kind, place string, episode int64) string {
	return shortDigest(incarnation, kind, place, strconv.FormatInt(episode, 10))
}

// shortDigest joins the parts with 0x00 and returns 16 hex digits of their SHA-256.
func shortDigest(parts ...string) string {
	sum := hashParts(parts...)
	return hex.EncodeToString(sum[:])[:digestLen]
}

func hashParts(parts ...string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(parts, string(rune(separator)))))
}
