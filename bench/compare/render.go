// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// renderLines shows JSON objects, one or several a line of text, with one value a line, so that
// a difference is a line.
func renderLines(text []byte) (string, error) {
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a float64 has no room for Unix ns
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", fmt.Errorf("read JSON at %d: %w", d.InputOffset(), err)
		}
		b.WriteString("---\n")
		render(&b, "", "", v)
	}
}

// renderRecords shows the lines of one recording. Requests of one moment come from goroutines
// whose order has no meaning: they are ordered by what they hold, ids aside. How log records are divided
// among requests has none either: each is shown by itself, and once where it is repeated in the same moment.
func renderRecords(text []byte) (string, error) {
	type request struct{ at, key, text string }
	var all []request
	for line := range bytes.Lines(text) {
		single, err := divide(line)
		if err != nil {
			return "", err
		}
		for _, line := range single {
			shown, err := renderLines(line)
			if err != nil {
				return "", err
			}
			at, rest, _ := strings.Cut(strings.TrimPrefix(shown, "---\n"), "\n")
			all = append(all, request{at, keyed.ReplaceAllString(rest, "$1"), shown})
		}
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].at == all[from].at {
			to++
		}
		slices.SortStableFunc(all[from:to], func(a, b request) int { return strings.Compare(a.key, b.key) })
		from = to
	}
	var b strings.Builder
	for i, r := range all {
		if i == 0 || r.at != all[i-1].at || !isLog(r.text) || untimed(r.text) != untimed(all[i-1].text) {
			b.WriteString(r.text)
		}
	}
	return b.String(), nil
}

func isLog(text string) bool { return strings.Contains(text, "logRecords:") }

var nanos = regexp.MustCompile(`imeUnixNano: \d+`)

// untimed returns a text without the times of a record: that of a repetition is the moment.
func untimed(text string) string { return nanos.ReplaceAllString(text, "") }

// render shows a value below its key. Attributes of OTLP/JSON are shown as key and value, and a
// text that is JSON itself, such as evidence, as what it holds, in the order in which it does.
func render(b *strings.Builder, indent, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := attributeValue(v); ok {
			render(b, indent, key, text)
			return
		}
		if key != "" {
			fmt.Fprintf(b, "%s%s:\n", indent, key)
			indent += "  "
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			render(b, indent, k, v[k])
		}
	case []any:
		renderList(b, indent, key, v)
	case string:
		if inner, ok := indentedJSON(v, indent+"  "); ok {
			fmt.Fprintf(b, "%s%s: %s\n", indent, key, inner)
			return
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, strings.ReplaceAll(v, "\n", "\n"+indent+"  "))
	default:
		fmt.Fprintf(b, "%s%s: %v\n", indent, key, v)
	}
}

func renderList(b *strings.Builder, indent, key string, list []any) {
	pairs := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, ok := m["key"].(string)
		if !ok || len(m) > 2 {
			pairs = nil
			break
		}
		pairs[name] = m["value"]
	}
	if len(pairs) == len(list) && len(list) > 0 {
		render(b, indent, key, pairs)
		return
	}
	for _, item := range list {
		if _, ok := item.(map[string]any); ok {
			render(b, indent, "- "+key, item)
			continue
		}
		render(b, indent, "-", item)
	}
}

// attributeValue returns what an OTLP/JSON value such as {"intValue": "7"} holds.
func attributeValue(m map[string]any) (any, bool) {
	if len(m) != 1 {
		return nil, false
	}
	for _, k := range []string{"stringValue", "intValue", "doubleValue", "boolValue", "bytesValue"} {
		if v, ok := m[k]; ok {
			return v, true
		}
	}
	for _, k := range []string{"arrayValue", "kvlistValue"} {
		if inner, ok := m[k].(map[string]any); ok {
			return inner["values"], true
		}
	}
	return nil, false
}

func indentedJSON(text, indent string) (string, bool) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[{") || !json.Valid([]byte(text)) {
		return "", false
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), indent, "  "); err != nil {
		return "", false
	}
	return b.String(), true
}
