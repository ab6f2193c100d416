// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forms are the structs, by their headings in docs/format/evidence.md.
var forms = []any{Checkpoint{}, Clock{}, Fleet{}, Hang{}, Held{}, Link{}, LogLine{}, Replica{}, Resume{}, Straggler{}}

func TestFormat_Document_HasTheKeysOfEachStruct(t *testing.T) {
	tables := readTables(t)
	for _, form := range forms {
		of := reflect.TypeOf(form)
		assert.Equal(t, keysOf(of, "", false), tables[of.Name()], of.Name())
		delete(tables, of.Name())
	}
	assert.Empty(t, tables, "tables of no struct")
	assert.Len(t, forms, len(decoders))
}

// row is a key with its type.
type row struct{ key, kind string }

var rowForm = regexp.MustCompile("^\\| `([^`]+)` \\| ([a-z ]+\\??) \\| ([^|]*)\\|")

// units are the units that the name of a key ends in.
var units = map[string]string{"_seconds": "s", "_ppm": "ppm", "_share": "1"}

// readTables reads the tables, by heading.
func readTables(t *testing.T) map[string][]row {
	t.Helper()
	text, err := os.ReadFile("../../../docs/format/evidence.md")
	require.NoError(t, err)
	tables, heading := map[string][]row{}, ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			heading = strings.TrimSpace(name)
		}
		m := rowForm.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		key, kind, unit := m[1], m[2], strings.TrimSpace(m[3])
		for end, want := range units {
			if strings.HasSuffix(key, end) {
				assert.Equal(t, want, unit, "%s of %s", key, heading)
			}
		}
		if kind = strings.TrimSpace(kind); strings.HasPrefix(kind, "number") {
			assert.NotEmpty(t, unit, "%s of %s", key, heading)
		}
		tables[heading] = append(tables[heading], row{key, kind})
	}
	return tables
}

// keysOf lists the keys of a struct in the order of its JSON; optional are those that may be absent.
func keysOf(of reflect.Type, path string, optional bool) (rows []row) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			rows = append(rows, keysOf(elem(f.Type), path, true)...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		kind, part := kindOf(elem(f.Type))
		if optional || options == "omitempty" {
			kind += "?"
		}
		rows = append(rows, row{path + name, kind})
		if part == nil {
			continue
		}
		if f.Type.Kind() == reflect.Slice {
			name += "[]"
		}
		rows = append(rows, keysOf(part, path+name+".", false)...)
	}
	return rows
}

func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// kindOf returns the type as the document writes it, and the struct that it consists of.
func kindOf(t reflect.Type) (text string, part reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		return "object", t
	case reflect.Slice:
		of, part := kindOf(t.Elem())
		return "list of " + of + "s", part
	case reflect.Map:
		of, _ := kindOf(t.Elem())
		return "map of " + of + "s", nil
	case reflect.Float64:
		return "number", nil
	case reflect.String:
		return "text", nil
	case reflect.Bool:
		return "boolean", nil
	default:
		return "integer", nil
	}
}
