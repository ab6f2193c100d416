// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"slices"
)

// Hang is what decided a finding of a hang, as JSON.
type Hang struct {
	Ranks    *int     `json:"ranks_seen,omitempty"` // absent where logs alone show the hang
	World    int64    `json:"world_size,omitempty"`
	Absent   int      `json:"ranks_absent,omitempty"`
	Members  int      `json:"members,omitempty"`
	Joined   int      `json:"members_in_it,omitempty"`
	Done     int      `json:"members_through,omitempty"`
	Missing  int      `json:"members_not_come,omitempty"`
	Unknown  int      `json:"members_unknown,omitempty"`
	Idle     int      `json:"members_not_started,omitempty"`
	Inferred bool     `json:"members_inferred,omitempty"`
	Lag      int64    `json:"behind_operations,omitempty"`
	Want     string   `json:"most_called,omitempty"`
	Got      string   `json:"called,omitempty"`
	Sent     int64    `json:"elements_sent,omitempty"`
	Received int64    `json:"elements_received,omitempty"`
	Victims  *int     `json:"ranks_waiting,omitempty"` // absent where logs alone show the hang
	Witness  string   `json:"witness,omitempty"`
	Order    []string `json:"order,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Of counts of launches: the processes that are meant, and how many have launched how much.
	Processes []string `json:"processes,omitempty"`
	Launched  string   `json:"launched,omitempty"`
	// Of a live watch: the data source, and the limit beyond which nothing may stand still.
	Watched string `json:"watched,omitempty"`
	*StallLimit

	sorted bool // the keys are in the order of the alphabet
}

// StallLimit is how long a job may stand still, and for how long it did.
type StallLimit struct {
	Limit float64 `json:"stall_limit_seconds"`
	Stood float64 `json:"stood_seconds"`
	Phase string  `json:"limit_of_phase"`
}

// WithNotes returns a copy with notes in front of those that there are; h may be nil.
func (h *Hang) WithNotes(notes []string) *Hang {
	out := h.copy()
	out.Notes = slices.Concat(notes, out.Notes)
	return out
}

// WithWatch returns a copy with what a live watch knows; h and the limit may be nil.
func (h *Hang) WithWatch(watched string, limit *StallLimit) *Hang {
	out := h.copy()
	out.Watched, out.StallLimit = watched, limit
	return out
}

func (h *Hang) copy() *Hang {
	out := Hang{}
	if h != nil {
		out = *h
	}
	out.sorted = true
	return &out
}

// MarshalJSON sorts the keys where something was added to what the analysis found, as readers of
// stored findings know them.
func (h *Hang) MarshalJSON() ([]byte, error) {
	type plain Hang
	text, err := json.Marshal((*plain)(h))
	if err != nil || !h.sorted {
		return text, err
	}
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	return json.Marshal(keys)
}
