// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const record = `{"after_seconds":60,"data":{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1795982400000000001","body":{"stringValue":"rank 5"},` +
	`"attributes":[{"key":"lockstep.finding.id","value":{"stringValue":"ID"}},{"key":"lockstep.finding.rank","value":{"intValue":"5"}},` +
	`{"key":"lockstep.finding.evidence","value":{"stringValue":"{\"z\":1,\"a\":[1,2]}"}},` +
	`{"key":"lockstep.finding.ranks","value":{"arrayValue":{"values":[{"intValue":"5"},{"intValue":"6"}]}}}]}]}]}]}}` + "\n"

func TestRenderLines_Record_HasAValueALine(t *testing.T) {
	got, err := renderLines([]byte(record))

	require.NoError(t, err)
	for _, line := range []string{
		"after_seconds: 60\n", "timeUnixNano: 1795982400000000001\n", "body: rank 5\n", "lockstep.finding.id: ID\n", "lockstep.finding.rank: 5\n",
	} {
		assert.Contains(t, got, line)
	}
	assert.Regexp(t, `(?s)lockstep.finding.evidence: \{\n *"z": 1,\n *"a": \[`, got, "in the order in which evidence has it")
	assert.Regexp(t, `(?s)lockstep.finding.ranks:?.*5\n.*6\n`, got)
}

func TestRenderRecords_RequestsOfOneMoment_HaveOneOrder(t *testing.T) {
	at := func(seconds, body, id string) string {
		return `{"after_seconds":` + seconds + `,"data":{"body":"` + body + `","spanId":"` + id + `"}}` + "\n"
	}
	one, err := renderRecords([]byte(at("1", "z", "aaaaaaaa") + at("2", "b", "bbbbbbbb") + at("2", "a", "cccccccc")))
	require.NoError(t, err)
	other, err := renderRecords([]byte(at("1", "z", "aaaaaaaa") + at("2", "a", "cccccccc") + at("2", "b", "bbbbbbbb")))
	require.NoError(t, err)
	later, err := renderRecords([]byte(at("1", "z", "aaaaaaaa") + at("2", "a", "cccccccc") + at("3", "b", "bbbbbbbb")))
	require.NoError(t, err)

	assert.Equal(t, one, other)
	assert.NotEqual(t, one, later)
}

// How log records are divided among requests has no meaning, nor has a repetition in the same moment; that
// there is another has.
func TestRenderRecords_OtherRequests_AreEqual(t *testing.T) {
	logs := func(bodies ...string) string {
		var records []string
		for _, b := range bodies {
			records = append(records, `{"body":{"stringValue":"`+b+`"}}`)
		}
		return `{"after_seconds":1,"data":{"resourceLogs":[{"resource":{"attributes":[{"key":"k","value":{"stringValue":"v"}}]},` +
			`"scopeLogs":[{"scope":{"name":"s"},"logRecords":[` + strings.Join(records, ",") + `]}]}]}}` + "\n"
	}
	one, err := renderRecords([]byte(logs("a", "b")))
	require.NoError(t, err)
	two, err := renderRecords([]byte(logs("b") + logs("a")))
	require.NoError(t, err)
	again, err := renderRecords([]byte(logs("a", "b", "b")))
	require.NoError(t, err)
	more, err := renderRecords([]byte(logs("a", "b", "c")))
	require.NoError(t, err)
	assert.Equal(t, one, two)
	assert.Equal(t, 2, strings.Count(one, "k: v"), "each has its resource")
	assert.Equal(t, one, again)
	assert.NotEqual(t, one, more)
}
