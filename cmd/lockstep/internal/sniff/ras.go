// SPDX-License-Identifier: Apache-2.0

package sniff

import (
	"bytes"
	"regexp"
)

// rasProse is the line that an answer of NCCL's RAS in text begins with. A prompt and the command
// may stand in front.
var rasProse = regexp.MustCompile(`(?m)^NCCL version \S+ compiled with CUDA `)

// rasKeys are the keys that only answers of RAS in JSON begin with: of the version of the library
// dumps tell, too.
var rasKeys = [][]byte{[]byte(`"communicators_count"`), []byte(`"communicators"`)}

// rasBehindText is an answer in JSON behind other lines: those of a shell, as a prompt and the command.
var rasBehindText = regexp.MustCompile(`(?m)^\{\s*"nccl_version"`)

// isRAS reports whether content begins as what ncclras prints.
func isRAS(head []byte) bool {
	text := bytes.TrimPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("\xef\xbb\xbf"))
	if len(text) == 0 {
		return false
	}
	switch text[0] {
	case '{', '[':
	default:
		return !bytes.ContainsRune(text, 0) && (rasProse.Match(text) || rasBehindText.Match(text) && hasRASKey(text))
	}
	if !bytes.Contains(text, []byte(`"nccl_version"`)) {
		return false
	}
	return hasRASKey(text)
}

func hasRASKey(text []byte) bool {
	for _, k := range rasKeys {
		if bytes.Contains(text, k) {
			return true
		}
	}
	return false
}
