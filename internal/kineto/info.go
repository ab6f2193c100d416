// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// MaxWorldSize bounds the ranks of a job that are believed, ten times the
// largest jobs known: analyses count up to it.
const MaxWorldSize = 1 << 20

// distributedInfo is the trace's own account of the job.
type distributedInfo struct {
	Backend   string
	Rank      *int64
	WorldSize *int64

	groups []pgConfig
}

type pgConfig struct {
	Name    string          `json:"pg_name"`
	Desc    string          `json:"pg_desc"`
	Backend string          `json:"backend_config"`
	Size    int64           `json:"pg_size"`
	Ranks   json.RawMessage `json:"ranks"`

	ranks []int64
}

const infoName = "distributedInfo"

// decodeInfo reads what it can, and says of the rest what is wrong.
func decodeInfo(val []byte) (d distributedInfo, wrong []string) {
	var raw struct {
		Backend   json.RawMessage `json:"backend"`
		Rank      json.RawMessage `json:"rank"`
		WorldSize json.RawMessage `json:"world_size"`
		Groups    json.RawMessage `json:"pg_config"`
	}
	note := func(what string) {
		if what != "" {
			wrong = append(wrong, what)
		}
	}
	if err := json.Unmarshal(val, &raw); err != nil {
		note(inWords(infoName, err))
		return d, wrong
	}
	if len(raw.Backend) > 0 {
		if err := json.Unmarshal(raw.Backend, &d.Backend); err != nil {
			note(inWords(infoName+".backend", err))
		}
	}
	var what string
	d.Rank, what = countIn(infoName+".rank", raw.Rank, 0, MaxWorldSize-1)
	note(what)
	d.WorldSize, what = countIn(infoName+".world_size", raw.WorldSize, 1, MaxWorldSize)
	note(what)
	d.groups, what = decodeGroups(raw.Groups)
	note(what)
	return d, wrong
}

// countIn reads an integer that may be absent; nil and why where it can not be
// believed.
func countIn(name string, raw json.RawMessage, least, most int64) (n *int64, wrong string) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, ""
	}
	n = new(int64)
	err := json.Unmarshal(raw, n)
	if err == nil && *n >= least && *n <= most {
		return n, ""
	}
	got := fmt.Sprintf("%.40s", raw)
	if te := (*json.UnmarshalTypeError)(nil); errors.As(err, &te) {
		got = gotWords(te.Value, got)
	}
	return nil, fmt.Sprintf("%s: got %s; want an integer from %d to %d", name, got, least, most)
}

// decodeGroups reads pg_config, which some versions write as a string.
func decodeGroups(raw json.RawMessage) (groups []pgConfig, wrong string) {
	if len(raw) == 0 {
		return nil, ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		raw = []byte(s)
	}
	if len(raw) > 0 && raw[0] == '{' {
		raw = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		wrong = inWords(infoName+".pg_config", err)
	}
	for i := range groups {
		g := &groups[i]
		g.ranks = rankList(string(listText(g.Ranks)))
		g.Ranks = nil
	}
	return groups, wrong
}

// inWords says what is wrong with the JSON of a member without the names that
// Go's decoder uses.
func inWords(name string, err error) string {
	te := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &te) {
		return name + ": got invalid JSON"
	}
	if te.Field != "" {
		name += "." + te.Field
	}
	want := "another type"
	switch te.Type.Kind() {
	case reflect.Int64:
		want = "an integer"
	case reflect.String:
		want = "a string"
	case reflect.Struct:
		want = "an object"
	case reflect.Slice:
		want = "a list"
	}
	return fmt.Sprintf("%s: got %s; want %s", name, gotWords(te.Value, te.Value), want)
}

// gotWords names a JSON type as the decoder calls it; other where it is a number.
func gotWords(value, other string) string {
	switch value {
	case "string":
		return "a string"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "number":
		if other == value {
			return "a number"
		}
	}
	return other
}
