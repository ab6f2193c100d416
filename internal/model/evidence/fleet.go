// SPDX-License-Identifier: Apache-2.0

package evidence

// Fleet is what decided a finding of class fleet_mixed, as JSON.
type Fleet struct {
	Domain string `json:"domain"`
	// Model is of what hardware the versions are.
	Model string `json:"model,omitempty"`
	// Held are the classes of versions, that of most nodes first.
	Held []FleetHeld `json:"held"`
	// Ranks is how many the communicator has, Known of how many of them the version is known.
	Ranks int `json:"ranks"`
	Known int `json:"known"`
	// Hosts are the first that are not of the first class.
	Hosts []string `json:"minority_hosts,omitempty"`
	// Covers is how many further communicators of ranks of this one span classes, too.
	Covers int `json:"covered_communicators,omitempty"`
}

// FleetHeld is one class of versions that may mix.
type FleetHeld struct {
	Versions []string `json:"versions"`
	Nodes    int      `json:"nodes"`
	Ranks    int      `json:"ranks"`
	First    string   `json:"first_host,omitempty"`
}
