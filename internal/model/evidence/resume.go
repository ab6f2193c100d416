// SPDX-License-Identifier: Apache-2.0

package evidence

// Resume is what decided a finding that ranks have loaded different states, as JSON.
type Resume struct {
	// Fields are the values in which ranks disagree, the first of FieldsCount.
	Fields      []ResumeField `json:"fields"`
	FieldsCount int           `json:"fields_count"`
	// Ranks were compared with each other, Of is how many there are, Apart how many loaded more or
	// less often than these.
	Ranks int `json:"ranks"`
	Of    int `json:"of,omitempty"`
	Apart int `json:"apart,omitempty"`
	// Hosts are those of the minority.
	Hosts []string `json:"minority_hosts,omitempty"`
}

// ResumeField is a value in which ranks disagree.
type ResumeField struct {
	Name string `json:"name"`
	// Replica names the ranks that must agree; absent where all must.
	Replica string `json:"replica,omitempty"`
	// Held are the first of Values, that of most ranks first; Told is how many ranks told one.
	Held   []ValueHeld `json:"held"`
	Values int         `json:"values"`
	Told   int         `json:"told"`
	// Decided: the first value is that of the majority of all ranks that must agree.
	Decided bool `json:"decided"`
}

// ValueHeld is a value, and the first ranks that hold it.
type ValueHeld struct {
	Value string  `json:"value"`
	Count int     `json:"count"`
	Ranks []int64 `json:"ranks"`
}
