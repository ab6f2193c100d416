// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"go/ast"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestScale_EachLiteral_ReturnsBothFactors(t *testing.T) {
	for _, c := range []struct {
		kind           token.Token
		text, up, down string
	}{
		{token.INT, "10", "12", "8"},
		{token.INT, "1_000", "1200", "800"},
		{token.INT, "3", "4", "2"}, // 3.6 and 2.4, rounded
		{token.INT, "2", "3", "1"}, // 2.4 rounds to 2, which is no change
		{token.INT, "1", "2", "0"},
		{token.INT, "0", "1", "-1"},
		{token.INT, "0o600", "", ""},
		{token.INT, "0644", "", ""},
		{token.INT, "0xff", "", ""},
		{token.INT, "18446744073709551615", "", ""},
		{token.FLOAT, "2.5", "3.0", "2.0"},
		{token.FLOAT, "0.05", "0.06", "0.04"},
		{token.FLOAT, "1e6", "1200000.0", "800000.0"},
		{token.FLOAT, "0.0", "", ""},
	} {
		literal := &ast.BasicLit{Kind: c.kind, Value: c.text}
		assert.Equal(t, c.up, scale(literal, 1.2), "1.2 times %s", c.text)
		assert.Equal(t, c.down, scale(literal, 0.8), "0.8 times %s", c.text)
	}
}
