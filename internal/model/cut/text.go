// SPDX-License-Identifier: Apache-2.0

package cut

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Limits of texts, bytes.
const (
	MaxLabel = 256
	MaxName  = 1024
	MaxPath  = 4096
	MaxLong  = 65536
)

// digestMark precedes the digest of a text that was cut.
const digestMark = "~"

// digestBytes are 64 bits of SHA-256: a million long texts with one prefix collide with a
// probability under 1e-7.
const digestBytes = 8

// suffixLen is the length of the mark and the digest.
const suffixLen = len(digestMark) + 2*digestBytes

// Fits reports whether Text returns the text as it is.
func Fits(s string, limit int) bool { return len(s) <= limit && utf8.ValidString(s) }

// Text returns s if it is valid UTF-8 and has at most limit bytes. Otherwise it returns a valid
// prefix of s and a digest of the whole, together at most limit bytes: texts that differ stay
// different, and equal ones stay equal in every process. Text(Text(s, n), n) is Text(s, n).
func Text[S ~string](s S, limit int) S {
	if Fits(string(s), limit) {
		return s
	}
	return S(cut(string(s), limit))
}

// Bytes is Text for texts that are compared and not shown. It does not check that a text that fits
// is UTF-8: on a hot path that check is expensive, and the check of the length is not.
func Bytes[S ~string](s S, limit int) S {
	if len(s) <= limit {
		return s
	}
	return S(cut(string(s), limit))
}

// Part returns Text(s, limit) in memory of its own: to keep a part of a larger text without
// keeping the larger one.
func Part[S ~string](s S, limit int) S {
	if Fits(string(s), limit) {
		return S(strings.Clone(string(s)))
	}
	return S(cut(string(s), limit))
}

func cut(s string, limit int) string {
	suffix := digestMark + digest(s)
	if limit < suffixLen {
		return suffix[suffixLen-max(0, limit):]
	}
	return prefix(s, limit-suffixLen) + suffix
}

// digest hashes s in pieces: a copy of a text that is too long would cost what the limit saves.
func digest(s string) string {
	h := sha256.New()
	for piece := make([]byte, min(len(s), 4096)); s != ""; {
		n := copy(piece, s)
		h.Write(piece[:n])
		s = s[n:]
	}
	return hex.EncodeToString(h.Sum(nil)[:digestBytes])
}

// prefix returns the longest valid prefix of at most limit bytes, with a replacement character
// for each byte of s that is no UTF-8.
func prefix(s string, limit int) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
