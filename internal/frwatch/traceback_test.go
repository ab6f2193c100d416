// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// stuck is an answer of PyTorch 2.15 with Python 3.11.
const stuck = `Current thread 0x00007f004eb266c0 (most recent call first):
  <no Python frame>

Thread 0x00007f010a22bb80 (most recent call first):
  File "/job/a "b", line 3 in c.py", line 8 in fetch
  File "/job/train.py", line 9 in train
  File "/job/train.py", line 10 in <module>
`

func TestTraceback(t *testing.T) {
	const calls = "fetch (/job/a \"b\", line 3 in c.py:8)\ntrain (/job/train.py:9)\n<module> (/job/train.py:10)"
	serve := func(text string) string {
		return worker(t, map[string]http.HandlerFunc{"dump_traceback": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }}, "[]")
	}
	deep := "Thread 0x1 (most recent call first):\n" + strings.Repeat("  File \"f.py\", line 1 in g\n", 5000)
	for name, c := range map[string]struct{ text, want string }{
		"the main thread is last":        {stuck, calls},
		"with a name":                    {strings.Replace(stuck, "bb80 (", "bb80 [python] (", 1), calls},
		"too many threads: it is not":    {stuck + "\n...\n", ""},
		"it has no Python call":          {stuck + "\nThread 0x2 (most recent call first):\n  <no Python frame>\n", ""},
		"calls that are none":            {"Thread 0x1:\n  File \"f.py\", line x in g\n  File \"f.py\"\n  File \", line 1 in\n  ...\n", ""},
		"deep":                           {deep, strings.TrimSuffix(strings.Repeat("g (f.py:1)\n", 100), "\n")},
		"nothing":                        {"", ""},
		"something else":                 {"<html>\n  File not found", ""},
		"names are cut":                  {"T:\n  File \"" + strings.Repeat("f", 1000) + "\", line 1 in " + strings.Repeat("é", 1000), strings.Repeat("é", 256) + " (" + strings.Repeat("f", 512) + ":1)"},
		"what is no text is left out":    {"T:\n  File \"\xff.py\", line 1 in g", "g (.py:1)"},
		"a number that no line can have": {"T:\n  File \"f.py\", line 99999999999 in g", ""},
	} {
		p := NewPuller(time.Second, 100, flightrecorder.DefaultOptions())
		got, err := p.Traceback(t.Context(), &Endpoint{URL: serve(c.text)})
		p.Close()
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}

	p := NewPuller(time.Second, 100, flightrecorder.DefaultOptions())
	defer p.Close()
	_, err := p.Traceback(t.Context(), &Endpoint{URL: worker(t, nil, "[]")})
	require.ErrorContains(t, err, "404", "it is not offered")
	_, err = p.Traceback(t.Context(), &Endpoint{URL: serve(strings.Repeat("x", maxTraceback+1))})
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestIdle(t *testing.T) {
	d := flightrecorder.Dump{Entries: []flightrecorder.Entry{{State: flightrecorder.Completed}, {Retired: true, State: flightrecorder.Scheduled}}}
	assert.True(t, Idle(&d))
	d.Entries = append(d.Entries, flightrecorder.Entry{State: flightrecorder.Started})
	assert.False(t, Idle(&d))
}

func FuzzMainThread(f *testing.F) {
	f.Add(stuck)
	f.Fuzz(func(t *testing.T, text string) {
		got := mainThread(text)
		assert.Less(t, strings.Count(got, "\n"), maxCalls)
		assert.LessOrEqual(t, len(got), maxCalls*(2*maxCallText+16))
	})
}
