// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// Resume is a record of KindResume: what the process loaded before its first step.
type Resume struct {
	Step          int64
	OptimizerStep int64 // meaningful if HasOptimizer
	HasOptimizer  bool
	RNG           [16]byte // digest of random generators' states; meaningful if HasRNG
	HasRNG        bool
	// DataCursor says where the data begin, Replica which ranks share it and the digest; empty
	// where they are not said, or are no text.
	DataCursor, Replica string
	At                  uint64 // ns
	TID                 uint32
	Number              uint32 // of the process's resume, from 1
}

// Flags of a resume.
const (
	resumeOptimizer Flags = 1 << 0
	resumeRNG       Flags = 1 << 1
	resumeCursor    Flags = 1 << 2
	resumeReplica   Flags = 1 << 3
)

// Resume reads a record of KindResume.
func (r *Record) Resume() Resume {
	v := Resume{
		Step: int64(r[2]), At: r[4], TID: uint32(r[5]), Number: uint32(r[5] >> 32),
		HasOptimizer: r.Has(resumeOptimizer), HasRNG: r.Has(resumeRNG),
	}
	if v.HasOptimizer {
		v.OptimizerStep = int64(r[3])
	}
	if v.HasRNG {
		binary.NativeEndian.PutUint64(v.RNG[:8], r[6])
		binary.NativeEndian.PutUint64(v.RNG[8:], r[7])
	}
	if r.Has(resumeCursor) {
		v.DataCursor = textOf(r[8:12])
	}
	if r.Has(resumeReplica) {
		v.Replica = textOf(r[12:16])
	}
	return v
}

// Fingerprint is a record of KindFingerprint: what a slice of the process's parameters hashes to.
type Fingerprint struct {
	Step         int64
	Hash         uint64
	Start, Total uint64 // first element of the slice; elements of all slices
	Group        string // of replicas; empty where it is no text
	Replicas     uint32 // 0: not said
	At           uint64 // ns
	TID          uint32
}

// Fingerprint reads a record of KindFingerprint.
func (r *Record) Fingerprint() Fingerprint {
	return Fingerprint{
		Step: int64(r[2]), Hash: r[3], At: r[4], TID: uint32(r[5]), Replicas: uint32(r[5] >> 32),
		Start: r[6], Total: r[7], Group: textOf(r[8:12]),
	}
}

// textOf is the text in some words. What is no text, or would steer a terminal, is none rather than
// put right: two that differ would become one.
func textOf(w []uint64) string {
	b := make([]byte, 0, 32)
	for _, word := range w {
		b = binary.NativeEndian.AppendUint64(b, word)
	}
	b, _, _ = bytes.Cut(b, []byte{0})
	if !utf8.Valid(b) || bytes.ContainsFunc(b, unicode.IsControl) {
		return ""
	}
	return string(b)
}
