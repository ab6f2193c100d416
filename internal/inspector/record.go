// SPDX-License-Identifier: Apache-2.0

package inspector

import "github.com/lockstep-otel/lockstep/internal/model"

// Kind is what a line tells of.
type Kind string

// The kinds of lines.
const (
	Collective Kind = "coll_perf"
	Message    Kind = "p2p_perf"
	Dump       Kind = "dump_stats"
	Proxy      Kind = "proxy_trace" // recognised and counted; what it holds is not read
)

// Comm is one process's membership of a communicator.
type Comm struct {
	ID    string `json:"id"` // commHash, in the data model's form
	Name  string `json:"name,omitempty"`
	Rank  int64  `json:"rank"` // in the communicator
	Ranks int64  `json:"ranks"`
	Nodes int64  `json:"nodes,omitempty"`
}

// Source is who wrote a line.
type Source struct {
	Version string `json:"version"`
	Host    string `json:"host"`
	PID     int64  `json:"pid"`
	Dumped  int64  `json:"dumped"` // Unix ns of the dump
}

// Record is one line.
type Record struct {
	Kind   Kind   `json:"kind"`
	Comm   Comm   `json:"comm"`
	Source Source `json:"source"`

	// Of a collective or a message:
	Name     string                  `json:"name,omitempty"` // in the data model's words
	Seq      int64                   `json:"seq,omitempty"`
	Bytes    int64                   `json:"bytes,omitempty"`
	Seconds  float64                 `json:"seconds,omitempty"`
	Timing   string                  `json:"timing,omitempty"` // kernel_gpu, kernel_cpu, collective_cpu
	BusRate  model.Optional[float64] `json:"bus"`              // bytes a second
	Algo     string                  `json:"algo,omitempty"`
	Proto    string                  `json:"proto,omitempty"`
	Peer     model.Optional[int64]   `json:"peer"` // rank in the communicator
	Channels int64                   `json:"channels,omitempty"`
	Launch   int64                   `json:"launch,omitempty"` // Unix ns; Launch, Start and End only of a verbose
	Start    int64                   `json:"start,omitempty"`  // log whose stamps can be true, else all zero
	End      int64                   `json:"end,omitempty"`
	Lost     []Loss                  `json:"lost,omitempty"` // of a dump
}

// Timed reports whether it is known when the operation ran.
func (r *Record) Timed() bool { return r.Start > 0 }

// Loss is how many records Inspector dropped since its dump before.
type Loss struct {
	Reason string `json:"reason"`
	N      int64  `json:"n"`
}
