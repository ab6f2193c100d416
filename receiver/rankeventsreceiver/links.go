// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"encoding/json"

	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// links is the JSON of lockstep.summary.links, specified in the README.
type links struct {
	Version int    `json:"v"`
	Scale   int    `json:"scale"`
	Links   []link `json:"links"`
}

type link struct {
	Comm    string  `json:"comm"`
	Channel uint8   `json:"channel"`
	Src     int64   `json:"src"`
	Dst     int64   `json:"dst"`
	Count   int64   `json:"n"`
	Sum     float64 `json:"sum"` // s
	Zero    int64   `json:"zero,omitempty"`
	Buckets []int64 `json:"b,omitempty"`
}

const linksVersion = 1

// marshalLinks renders the delays of links; empty where there are none.
func marshalLinks(from []rankevents.Link) string {
	if len(from) == 0 {
		return ""
	}
	out := links{Version: linksVersion, Scale: stats.Scale}
	for _, l := range from {
		wire := link{Comm: l.Comm, Channel: l.Channel, Src: l.Src, Dst: l.Dst, Count: l.Count, Sum: float64(l.Sum) / 1e9, Zero: l.Zero}
		l.Each(func(i int32, n int64) { wire.Buckets = append(wire.Buckets, int64(i), n) })
		out.Links = append(out.Links, wire)
	}
	text, err := json.Marshal(out)
	if err != nil { // a sum that is no number; it says nothing
		return ""
	}
	return string(text)
}
