// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReader(t *testing.T) {
	m := pcommon.NewMap()
	m.PutStr("text", "x")
	m.PutInt("number", 7)
	m.PutInt("whole", 1)
	m.PutDouble("half", 0.5)
	m.PutBool("yes", true)
	r := Reader{M: m}
	n, ok := r.Integer("number")
	assert.True(t, ok)
	assert.EqualValues(t, 7, n)
	_, ok = r.Integer("none")
	assert.False(t, ok)
	assert.Equal(t, []string{"x", "x", ""}, []string{r.Text("text"), r.Needed("text"), r.Text("none")})
	assert.Equal(t, []float64{1, 0.5, 1}, []float64{r.Share("whole"), r.Share("half"), r.Share("none")})
	assert.Equal(t, []bool{true, false}, []bool{r.Flag("yes"), r.Flag("none")})
	require.NoError(t, r.Err)
}

func TestTheFirstFaultIsKept(t *testing.T) {
	m := pcommon.NewMap()
	m.PutStr("long", strings.Repeat("x", MaxText+1))
	m.PutStr("bytes", "\xff")
	m.PutStr("text", "x")
	m.PutDouble("two", 2)
	for want, read := range map[string]func(*Reader){
		"read attribute long: got 4097 bytes; want at most 4096": func(r *Reader) { r.Text("long") },
		`read attribute bytes: got what is no text: "\xff"`:      func(r *Reader) { r.Text("bytes") },
		"read attribute none: got none; want one":                func(r *Reader) { r.Needed("none") },
		"read attribute text: got type Str; want Int":            func(r *Reader) { r.Integer("text") },
		"read attribute text: got type Str; want Double":         func(r *Reader) { r.Share("text") },
		"read attribute two: got 2; want 0 to 1":                 func(r *Reader) { r.Share("two") },
	} {
		r := Reader{M: m}
		read(&r)
		r.Fail("later")
		require.EqualError(t, r.Err, want)
	}
}
