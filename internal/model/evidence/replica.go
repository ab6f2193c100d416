// SPDX-License-Identifier: Apache-2.0

package evidence

// Replica is what decided a finding that the parameters of replicas differ, as JSON.
type Replica struct {
	Group string `json:"group"`
	// Step is the last after which a slice was seen to differ that is still in doubt, Start the slice's
	// first element, Total how many all slices have, Slices how many of them are in doubt.
	Step   int64 `json:"step"`
	Start  int64 `json:"start"`
	Total  int64 `json:"total"`
	Slices int   `json:"slices"`
	// Held are the first of Hashes, that of most replicas first; Told is how many told one.
	Held     []ValueHeld `json:"held"`
	Hashes   int         `json:"hashes"`
	Told     int         `json:"told"`
	Replicas int         `json:"replicas,omitempty"`
	// Decided: the first hash is that of the majority of all replicas.
	Decided bool `json:"decided"`
	// Hosts and GPUs are those of the minority.
	Hosts []string `json:"minority_hosts,omitempty"`
	GPUs  []string `json:"minority_gpus,omitempty"`
}
