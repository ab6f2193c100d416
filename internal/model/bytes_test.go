// SPDX-License-Identifier: Apache-2.0

package model

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// fill gives each text a thousand bytes and each slice ten elements, but for lists of members, and
// returns the bytes of all texts and elements, without the value itself.
func fill(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("x", 1000))
		return 1000
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Members" {
				bytes += fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 10, 10))
		bytes = 10 * int(v.Type().Elem().Size())
		for i := range v.Len() {
			bytes += fill(v.Index(i))
		}
	}
	return bytes
}

// A text that Bytes forgets is a text that nothing bounds.
func TestBytes_EveryTextAndSlice_IsCounted(t *testing.T) {
	var rank Rank
	assert.Equal(t, fill(reflect.ValueOf(&rank).Elem()), rank.TextBytes())
	var comm Comm
	assert.Equal(t, fill(reflect.ValueOf(&comm).Elem()), comm.TextBytes())
	for _, v := range []interface{ Bytes() int }{&Finding{}, &Op{}, &OpenOp{}, &RankState{}} {
		of := reflect.ValueOf(v).Elem()
		want := int(of.Type().Size()) + fill(of)
		assert.Equal(t, want, v.Bytes(), of.Type().Name())
	}
}
