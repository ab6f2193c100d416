// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compared returns what is printed of two revisions that print the given texts.
func compared(t *testing.T, base, head, intended string, change func(*input)) (string, error) {
	t.Helper()
	l, err := parseListed(intended)
	require.NoError(t, err)
	var out bytes.Buffer
	c := &comparison{
		o: &options{base: "main", lines: 10, workers: 1, only: regexp.MustCompile(""), parts: parts, listed: "listed.txt"}, intended: l,
		base: &revision{name: "base"}, head: &revision{name: "head"}, stdout: &out, stderr: io.Discard,
	}
	in := input{name: "the input", run: func(_ context.Context, r *revision) (string, error) {
		text := base
		if r == c.head {
			text = head
		}
		return (&normal{}).apply(text), nil
	}}
	if change != nil {
		change(&in)
	}
	require.NoError(t, c.each(t.Context(), []input{in}))
	err = c.conclude()
	return out.String(), err
}

func TestCompare_ChangedVerdict_IsShown(t *testing.T) {
	out, err := compared(t, finding, strings.Replace(finding, `"host"`, `"compute"`, 1), "", nil)

	require.ErrorContains(t, err, "got 1 unlisted differences")
	assert.Contains(t, out, "differs  the input\n  @@ line 3 @@\n"+
		`  -  "lockstep.finding.class": "host",`+"\n"+`  +  "lockstep.finding.class": "compute",`+"\n")
	assert.Contains(t, out, "listed: 0, unlisted: 1")
}

func TestCompare_ChangedIDAlone_IsEqual(t *testing.T) {
	out, err := compared(t, finding, strings.ReplaceAll(finding, "7142b045c26c17f0", "1111111111111111"), "", nil)

	require.NoError(t, err)
	assert.Contains(t, out, "equal: 1,")
}

func TestCompare_ChangedEqualityOfIDs_IsShown(t *testing.T) {
	head := strings.ReplaceAll(finding, "aaaaaaaaaaaaaaaa", "7142b045c26c17f0")

	out, err := compared(t, finding, head, "", nil)

	require.Error(t, err)
	assert.Contains(t, out, `  -  "other": {"lockstep.finding.id": "finding-id-2"}`+"\n"+`  +  "other": {"lockstep.finding.id": "finding-id-1"}`)
}

func TestCompare_IntendedDifference_IsListed(t *testing.T) {
	const entries = "# why\n\n^the input$ | lockstep.finding.class | classes are named after their cause\n"
	head := strings.Replace(finding, `"host"`, `"cpu"`, 1)

	out, err := compared(t, finding, head, entries, nil)

	require.NoError(t, err)
	assert.Contains(t, out, "listed: 1, unlisted: 0")

	out, err = compared(t, finding, head+"\nmore", entries, nil)

	require.Error(t, err, "one of its lines is not intended")
	assert.Contains(t, out, "listed: 0, unlisted: 1")

	out, err = compared(t, finding, finding, entries, nil)

	require.NoError(t, err)
	assert.Contains(t, out, "unused entry of listed.txt: ^the input$")
}

func TestCompare_OutputOfOneRevisionVaries_IsUnsteady(t *testing.T) {
	var base, head atomic.Int64
	out, err := compared(t, "", "", "", func(in *input) {
		in.run = func(_ context.Context, r *revision) (string, error) {
			if r.name == "base" {
				return []string{"a", "b"}[base.Add(1)%2], nil
			}
			return []string{"b", "a"}[head.Add(1)%2], nil
		}
	})

	require.NoError(t, err)
	assert.Contains(t, out, "unsteady: 1")
}

func TestCompare_InputFails_OthersAreCompared(t *testing.T) {
	out, err := compared(t, "", "", "", func(in *input) {
		in.run = func(context.Context, *revision) (string, error) { return "", errors.New("no room") }
	})

	require.ErrorContains(t, err, "got 1 inputs that failed")
	assert.Contains(t, out, "failed   the input\n  no room")
}

func TestParseListed_NoReason_NamesLine(t *testing.T) {
	for _, text := range []string{"a | b | ", "a | b", "( | b | reason"} {
		_, err := parseListed("# comment\n" + text + "\n")
		require.ErrorContains(t, err, "read line 2", text)
	}
}
