// SPDX-License-Identifier: Apache-2.0

package pickle

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// slow is DataOnly without an opcode of the quick loop, which is then not used.
func slow() *Policy {
	p := *DataOnly
	p.allow[opLongBinGet] = false
	return &p
}

// FuzzQuick: what the quick loop makes of a pickle is what the opcodes make one by one.
func FuzzQuick(f *testing.F) {
	for _, s := range []string{
		"\x80\x02}(X\x01\x00\x00\x00aq\x00](K\x01M\x01\x02J\xfe\xff\xff\xffe\x86h\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40u.",
		"\x80\x02](](K\x01e]q\x00(h\x00e](}e\x88\x89Ne.          ", "\x80\x02((e(ee](N(ee](ee(]]((((((((",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{Text: 64, Stack: 32, Memo: 16, Values: 64, Depth: 5}
		one, many := NewMachine(data, slow(), l), NewMachine(data, DataOnly, l)
		want, wantErr := one.Run()
		var refused *Error
		if errors.As(wantErr, &refused) && refused.Op == opLongBinGet {
			return
		}
		got, err := many.Run()
		require.Equal(t, wantErr, err)
		if errors.Is(err, ErrTruncated) {
			want, _ = one.Salvage()
			got, _ = many.Salvage()
		}
		require.Equal(t, show(one, want, 3), show(many, got, 3))
	})
}

// FuzzMachine: no pickle crashes the reader, or takes more than its limits; and what a
// cut one salvages can be walked.
func FuzzMachine(f *testing.F) {
	for _, s := range []string{
		"", "\x80\x02N.", "\x80\x02}(X\x01\x00\x00\x00aq\x00](K\x01M\x01\x02J\xfe\xff\xff\xffe\x86h\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40u.",
		"\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94]\x94h\x00aN}\x88s\x87.", "\x80\x02]q\x00h\x00a.",
		"\x80\x02](]q\x00]q\x01eh\x00K\x01ah\x01K\x02ah\x00K\x03a\x87.", "\x80\x02cos\nsystem\n)R.",
		"\x80\x02ca\nb\n)\x81}X\x01\x00\x00\x00xK\x01sb.", "\x80\x04\x8c\x01a\x94\x8c\x01b\x94\x93)R(K\x01K\x02uK\x03a.",
		"\x80\x02ca\nb\nq\x00)}\x92q\x01h\x01b\x8f(K\x01\x90(\x91N0\x320Q\x87.",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{Text: 64, Stack: 256, Memo: 64, Values: 512, Depth: 8}
		for _, how := range []struct {
			policy *Policy
			take   bool
		}{{DataOnly, false}, {DataOnly, true}, {Inert, false}, {Inert, true}} {
			m := NewMachine(data, how.policy, l)
			if how.take {
				m.Take = func(pairs []Value, _ bool) (int32, bool) {
					for _, v := range pairs {
						show(m, v, 2)
					}
					return 1, len(pairs) > 2
				}
			}
			v, err := m.Run()
			require.LessOrEqual(t, len(m.stack), l.Stack)
			require.LessOrEqual(t, len(m.memo), l.Memo)
			require.LessOrEqual(t, len(m.arena)+len(m.boxes)+len(m.texts), l.Values)
			ok := err == nil
			if errors.Is(err, ErrTruncated) {
				v, ok = m.Salvage()
			}
			if ok {
				show(m, v, 3)
			}
		}
	})
}
