// SPDX-License-Identifier: Apache-2.0

package capability

// Shape is how a program's hosts and devices go together, and who is named in it by
// what is recorded.
type Shape struct {
	Name string // for a reader
	Job  string // of the simulation
	// Compute and Host are under what a rank that computes longer, and one whose host
	// is late, are named, by row.
	Compute, Host map[Row][]string
}

func byRow(channels, scopes, cupti, kineto string) map[Row][]string {
	return map[Row][]string{KernelChannels: {channels}, Scopes: {scopes}, CUPTI: {cupti}, Kineto: {kineto}}
}

// unsure is byRow of the one shape in which scopes tell in some jobs only.
func unsure(channels, cupti, kineto string, scopes ...string) map[Row][]string {
	m := byRow(channels, "", cupti, kineto)
	m[Scopes] = scopes
	return m
}

// Shapes of programs.
var Shapes = []Shape{
	{
		"data-parallel, the loss is read after each step", "reads",
		byRow(computeAs, computeAs, computeAs, computeAs), byRow(hostAs, hostAs, hostAs, hostAs),
	}, {
		"the same, and the host waits for its device before each collective", "reads at",
		byRow(hostAs, hostAs, computeAs, computeAs), byRow(hostAs, hostAs, hostAs, hostAs),
	}, {
		"the same, and the host never waits", "ahead",
		byRow(computeAs, computeAs, computeAs, computeAs), byRow(hostAs, hostAs, hostAs, hostAs),
	}, {
		"sharded, parameters gathered a layer ahead, one value read in each step", "sharded",
		byRow(Nobody, Nobody, computeAs, computeAs), byRow(hostAs, hostAs, hostAs, hostAs),
	}, {
		"the same, and the host never waits", "unwaited",
		unsure(computeAs, computeAs, computeAs, computeAs, Nobody), byRow(hostAs, hostAs, hostAs, hostAs),
	}, {
		"a pipeline of four stages with two replicas", "pipelined",
		byRow(Nobody, Nobody, computeAs, Nobody), byRow(Nobody, Nobody, hostAs, Nobody),
	},
}
