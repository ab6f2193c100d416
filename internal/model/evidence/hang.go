// SPDX-License-Identifier: Apache-2.0

package evidence

// Hang is the numbers that decided, as JSON.
type Hang struct {
	Ranks    int      `json:"ranks_seen"`
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
	Victims  int      `json:"ranks_waiting"`
	Witness  string   `json:"witness,omitempty"`
	Order    []string `json:"order,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Of counts of launches: who is meant, and how many have launched how much.
	Processes []string `json:"processes,omitempty"`
	Launched  string   `json:"launched,omitempty"`
}
