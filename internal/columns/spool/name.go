// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	extension = ".parquet"
	temporary = extension + ".tmp"
	unnamed   = "unnamed"
	// maxFolder bounds the name of a folder, bytes.
	maxFolder = 64
	// digestBytes of SHA-256 make folders differ that get a changed name.
	digestBytes = 4
)

// Folder returns the name of a folder for a name from outside: of letters, digits and "._-" alone, not hidden, and
// of limited length. A name that is changed gets a digest of the whole, so that two of them stay two folders.
func Folder(name string) string {
	if name == "" {
		return unnamed
	}
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	safe = strings.TrimLeft(safe, ".")
	if safe == name && len(safe) <= maxFolder && safe != unnamed {
		return safe
	}
	digest := sha256.Sum256([]byte(name))
	mark := "-" + hex.EncodeToString(digest[:digestBytes])
	return safe[:min(len(safe), maxFolder-len(mark))] + mark
}

// fileName returns the name of a file of operations of these steps. Names of one folder sort by step and number.
func fileName(first, last model.Optional[int64], number int64) string {
	steps := "none"
	if first.OK {
		steps = fmt.Sprintf("%010d-%010d", first.V, last.V)
	}
	return fmt.Sprintf("steps-%s-%013d%s", steps, number, extension)
}

// named has the number of a file in its group.
var named = regexp.MustCompile(`^steps-(?:none|-?\d+--?\d+)-(\d+)` + regexp.QuoteMeta(extension) + `$`)

// numberOf returns the number of a file of ours; false where its name is of no such file.
func numberOf(file string) (int64, bool) {
	m := named.FindStringSubmatch(file)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil && n < math.MaxInt64
}
