// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// unmarshal reads JSON as Python's json writes it: with the numbers NaN, Infinity and -Infinity,
// which are no JSON and are null here. A document with a key twice is refused, as Python writes none:
// it keeps the last of both where it reads, and encoding/json mixes them.
func unmarshal(b []byte, v any) error {
	var doc map[string]json.RawMessage
	err := json.Unmarshal(b, &doc)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		finite := withoutNonFinite(b)
		if finite == nil {
			return err
		}
		b = finite
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		return json.Unmarshal(b, v) // no object
	}
	if err := once(b, 2); err != nil {
		return err
	}
	if !folded(doc, v) {
		return json.Unmarshal(b, v)
	}
	if b, err = json.Marshal(doc); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// once refuses an object with a key twice, and such objects in it, so many levels deep. What lies
// deeper is not read into maps. It is for JSON that was found to be such.
func once(b []byte, levels int) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		var value json.RawMessage
		token, err := d.Token()
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if seen[key] {
			return fmt.Errorf("got key %s twice; want it once", quote(key))
		}
		seen[key] = true
		if levels > 1 && value[0] == '{' {
			if err := once(value, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// folded takes the keys out of a document that encoding/json would take for one of v's, and Python
// would not: those that differ from it in case. It reports whether there were any.
func folded(doc map[string]json.RawMessage, v any) (found bool) {
	t := reflect.TypeOf(v).Elem()
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		for key := range doc {
			if key != name && strings.EqualFold(key, name) {
				delete(doc, key)
				found = true
			}
		}
	}
	return found
}

// withoutNonFinite has null for each number that is not finite; nil where there is none.
func withoutNonFinite(b []byte) []byte {
	var out []byte
	quoted, from := false, 0
	for i := 0; i < len(b); i++ {
		switch {
		case quoted && b[i] == '\\':
			i++
		case b[i] == '"':
			quoted = !quoted
		case !quoted:
			n := nonFinite(b[i:])
			if n == 0 {
				continue
			}
			out = append(append(out, b[from:i]...), "null"...)
			i += n - 1
			from = i + 1
		}
	}
	if out == nil {
		return nil
	}
	return append(out, b[from:]...)
}

// nonFinite is how long the number at the beginning is that is not finite; 0 where there is none.
func nonFinite(b []byte) int {
	for _, s := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(s)) {
			return len(s)
		}
	}
	return 0
}
