// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const message = `{"version": 1, "job": "llama", "domain": "rank 3", "domains": 8, "life": "a1", "sequence": 7, "session": "5e",
 "slots": [{"epoch": 100, "attempt": "4d", "state": "committed"}, {"epoch": 200, "attempt": "5e", "state": "tentative"}],
 "wait": {"for": "tentative", "epoch": 200, "seconds": 2.5, "missing": true}, "later": "more"}`

func TestParseMessage(t *testing.T) {
	told, until, wait, err := ParseMessage([]byte(message))
	require.NoError(t, err)
	assert.Equal(t, Tell{
		Job: "llama", Domain: "rank 3", Domains: 8, Life: "a1", Sequence: 7, Session: "5e",
		Slots: []Slot{slot(100, "4d", Committed), slot(200, "5e", Tentative)},
	}, told)
	assert.Equal(t, Until{State: Tentative, Epoch: 200, Missing: true}, until)
	assert.Equal(t, 2500*time.Millisecond, wait)
	_, until, wait, err = ParseMessage([]byte(`{"version": 1, "job": "j", "domain": "d", "domains": 1, "life": "a", "sequence": 1}`))
	require.NoError(t, err)
	assert.Zero(t, until)
	assert.Zero(t, wait)
}

func TestParseMessageThatIsNotRight(t *testing.T) {
	const rest = `"version": 1, "job": "j", "domain": "d", "domains": 1, "life": "a", "sequence": 1`
	for text, want := range map[string]string{
		``:               "parse message: unexpected end of JSON input",
		`{"version": 2}`: "parse message: check version: got 2; want 1",
		`{"version": 1}`: `parse message: check job: got ""; want 1 to 128 bytes of text`,
		`{` + rest + `, "slots": [{"epoch": 1, "attempt": "a", "state": "whole"}]}`:       `parse message: check slots: 0: parse state: got "whole"`,
		`{` + rest + `, "slots": [{}, {}, {}, {}, {}, {}, {}, {}, {}]}`:                   "parse message: check slots: got 9; want at most 8",
		`{` + rest + `, "wait": {"for": "ever"}}`:                                         `check wait: got "ever"; want session, tentative, reflecting or committed`,
		`{` + rest + `, "wait": {"for": "session", "seconds": 11}}`:                       "check wait: got 11 seconds; want 0 to 10",
		`{` + rest + `, "wait": {"for": "session", "seconds": -1}}`:                       "check wait: got -1 seconds",
		`{"version": 1, "job": "j", "domain": "d", "domains": 1.5}`:                       "cannot unmarshal number 1.5",
		`{"version": 1, "job": "j", "domain": "d", "domains": 9223372036854775807000000}`: "cannot unmarshal number",
	} {
		_, _, _, err := ParseMessage([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestAnswerAsItIsSent(t *testing.T) {
	a := Answer{
		Domains: 2, Heard: 2, Session: "5e", Joined: 1, Recoverable: model.Some(Attempt{1, "4d"}), Lost: model.Some(Attempt{2, "4d"}),
		Saves: []Count{{Attempt{1, "4d"}, 2, 1, 0}}, Missing: []string{"rank 1"}, MissingCount: 1,
	}
	data, err := json.Marshal(&a)
	require.NoError(t, err)
	assert.JSONEq(t, `{"version": 1, "domains": 2, "heard": 2, "session": "5e", "joined": 1, "recoverable": {"epoch": 1, "attempt": "4d"},
		"lost": {"epoch": 2, "attempt": "4d"}, "saves": [{"epoch": 1, "attempt": "4d", "tentative": 2, "reflecting": 1, "committed": 0}],
		"missing": ["rank 1"], "missing_count": 1}`, string(data))
	data, err = json.Marshal(&Answer{Domains: 2})
	require.NoError(t, err)
	assert.JSONEq(t, `{"version": 1, "domains": 2, "heard": 0, "session": "", "joined": 0, "recoverable": null, "lost": null, "saves": []}`, string(data))
	data, err = json.Marshal([]*Job{{Name: "j", Domains: 2, Heard: 1, LastHeard: time.Unix(0, 0)}})
	require.NoError(t, err)
	assert.JSONEq(t, `[{"job": "j", "domains": 2, "heard": 1, "session": "", "joined": 0, "saves": [], "last_heard": "1970-01-01T00:00:00Z"}]`, string(data))
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(message))
	f.Add([]byte(`{"version": 1, "slots": [null], "wait": {"seconds": 1e400}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		told, until, _, err := ParseMessage(data)
		if err != nil {
			return
		}
		require.NoError(t, told.Check())
		b := New(limits)
		a, err := b.Tell(&told, until, time.Unix(0, 0))
		require.True(t, err == nil || told.Domains > limits.MaxDomains, "%v", err)
		require.LessOrEqual(t, a.Heard, 1)
		_, err = json.Marshal(&a)
		require.NoError(t, err)
		changes(b, true)
	})
}
