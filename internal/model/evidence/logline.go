// SPDX-License-Identifier: Apache-2.0

package evidence

// LogLine is what a finding rests on that a line of a log says, as JSON.
type LogLine struct {
	Pattern string `json:"pattern"`
	// Line is the first that came, at most its first 512 bytes; Time is its own, in RFC 3339.
	Line string `json:"line"`
	Time string `json:"time,omitempty"`
	// Said is what that line says, by name.
	Said map[string]string `json:"said,omitempty"`
	// Lines is how many came. Hosts and Ranks are whose they are, as far as is known; More: these are
	// not all.
	Lines int64    `json:"lines"`
	Hosts []string `json:"hosts,omitempty"`
	Ranks []int64  `json:"ranks,omitempty"`
	More  bool     `json:"more,omitempty"`
}
