// SPDX-License-Identifier: Apache-2.0

package evidence

// Checkpoint is what decided a finding of kind epoch, as JSON.
type Checkpoint struct {
	Save       int64            `json:"save"`
	Generation string           `json:"generation,omitempty"`
	Held       []CheckpointHeld `json:"held,omitempty"`
	Domains    int              `json:"domains"`
	// Missing are domains that do not confirm, at most as many as a finding lists; MissingCount is
	// how many there are.
	Missing      []CheckpointMissing `json:"missing,omitempty"`
	MissingCount int                 `json:"missing_count,omitempty"`
	// Frontier is the newest epoch that every domain confirms.
	Frontier *int64 `json:"frontier,omitempty"`
}

// CheckpointHeld is how many domains hold an epoch, and the first of them.
type CheckpointHeld struct {
	Epoch   int64  `json:"epoch"`
	Domains int    `json:"domains"`
	First   string `json:"first,omitempty"`
}

// CheckpointMissing is a domain that does not confirm.
type CheckpointMissing struct {
	Domain string `json:"domain"`
	State  string `json:"state"`
}
