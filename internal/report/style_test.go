// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesDoNotDriveTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred":         "?[31mred",
		"a\u202Eb":            "a?b", // turns the direction of what follows
		"a\u200Db\u2066c":     "a?b?c",
		"a\u2028b\u0085c":     "a?b?c",
		"\xff":                "?",
		"größe 模型 all_reduce": "größe 模型 all_reduce",
	} {
		assert.Equal(t, want, Clean(in), "%q", in)
	}
}
