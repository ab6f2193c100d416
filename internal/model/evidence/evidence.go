// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"strings"
)

// Evidence is what decided one finding: a pointer to the struct of its kind, or a Text. Copies of a
// finding share it, so it is replaced and never changed.
type Evidence interface{ evidence() }

// Text is evidence that came from elsewhere, as JSON of any kind and version. It is kept byte for byte.
type Text string

func (Text) evidence()        {}
func (*Checkpoint) evidence() {}
func (*Clock) evidence()      {}
func (*Fleet) evidence()      {}
func (*Hang) evidence()       {}
func (*Held) evidence()       {}
func (*Link) evidence()       {}
func (*LogLine) evidence()    {}
func (*Replica) evidence()    {}
func (*Resume) evidence()     {}
func (*Straggler) evidence()  {}

// version is the one that As reads. JSON of this version does not name it.
const version = "1"

// kind is a pointer to the struct of a kind.
type kind[T any] interface {
	*T
	Evidence
}

// As returns the evidence as the struct T, which the caller must not change. A Text is decoded: a key
// that T does not have is left out, a key that the Text does not have is zero, so that a Text of another
// kind gives the keys that both have. As returns false for nil, another struct than T, another version,
// and a Text that does not fit T.
func As[T any, P kind[T]](e Evidence) (*T, bool) {
	switch e := e.(type) {
	case P:
		return e, true
	case Text:
		out := new(T)
		if e.current() && json.Unmarshal([]byte(e), out) == nil {
			return out, true
		}
	}
	return nil, false
}

// current reports whether a text does not name another version.
func (t Text) current() bool {
	if !strings.Contains(string(t), `"version"`) {
		return true
	}
	var of struct {
		Version json.RawMessage `json:"version"`
	}
	err := json.Unmarshal([]byte(t), &of)
	return err == nil && (of.Version == nil || string(of.Version) == version)
}

// Encode returns the evidence as JSON, a Text as it came; "" for nil. JSON has no infinity and no NaN:
// such a number is left out of a map, absent where it may be, else 0.
func Encode(e Evidence) string {
	switch e := e.(type) {
	case nil:
		return ""
	case Text:
		return string(e)
	}
	text, err := json.Marshal(e)
	if err != nil {
		text, err = json.Marshal(finite(e))
	}
	if err != nil {
		return "" // finite numbers and texts always encode
	}
	return string(text)
}

// FromText returns what arrived as text; nil for none.
func FromText(text string) Evidence {
	if text == "" {
		return nil
	}
	return Text(text)
}
