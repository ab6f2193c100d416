// SPDX-License-Identifier: Apache-2.0

package capability

import "github.com/lockstep-otel/lockstep/internal/model"

const unread = "Its dumps are read for hangs; what they say of stragglers is not judged."

// unjudged says of each kind that no engine judges what the witnesses see of it, and
// what more it would take, or who tells of it instead.
var unjudged = map[string]string{
	model.FindingClock: "Told by the connector `clocks`, where nodes probe one another (`owd_probe`) or services call one another, and tested there. What a rank's witnesses see of clocks is used to place its spans (`clock_skew`, `straggler`), with bounds; no finding made of that alone is tested. Flight Recorder stamps are not read.",
	"fabric":           "No row has a witness of network cards or switches: it would take their counters. What they do to a job shows as `straggler`/`link`, from proxy steps on.",
	model.FindingEpoch: "Told by the connector `epoch`, from what `checkpoint` receivers see of saves and `fleet_version` receivers of nodes, and tested there; no row has a witness of that. Who computes with whom it takes from states of ranks (`rank_events`, Flight Recorder, NCCL's RAS).",
	"crash":            "That a process ended without closing its ring is told with its open operations; which rank failed first is not decided.",
}
