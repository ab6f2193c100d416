// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"time"

	"go.opentelemetry.io/collector/connector"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector"
	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/epochconnector"
	"github.com/lockstep-otel/lockstep/connector/findingsconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
)

// analysis is a connector with what it is fed.
type analysis struct {
	name    string
	factory func() connector.Factory
	config  map[string]any
	emits   []output
	// feed is sent for so many moments. What comes of it does not depend on when the connector looks. After these the connector runs on for quiet.
	feed    feed
	moments int64
	quiet   time.Duration
	// left is how many of a signal the engine itself leaves out, and counts with those that are dropped.
	left map[string]int
	// used counts what the engine has used of the feed, by counter.
	used string
	// probe is a moment of the feed that is used as soon as it comes.
	probe int64
	// takes is of how many signals it is.
	takes int
	// filler fills the inbox, and filled is how much of it used counts. Logs: the connector has no storage, and its log is what
	// keeps it busy.
	filler func() batch
	filled int
	logs   bool
	// refused counts batches for which the inbox has no room; empty: nothing does.
	refused string
}

// output is a signal that a connector emits.
type output struct {
	signal string
	rule   rule
	// dropped counts what is dropped of it; empty for series.
	dropped string
}

// repeats is longer than any feed, so that what is refused arrives because it is sent again, and not because the
// connector repeats open findings.
const repeats = "1h"

// phase keeps the feed apart from the intervals of the connectors.
const phase = 100 * time.Millisecond

// connectors are all of them, with settings that decide soon.
func connectors() []analysis {
	const (
		memory4 = 4 << 20 // max_memory_mib
		fill    = inboxBytes/longText + 1
	)
	return []analysis{
		{
			name: "straggler", factory: stragglerconnector.NewFactory, used: "connector_straggler_steps_analysed",
			config: map[string]any{"deadline": "2s", "flush_interval": "500ms", "repeat_interval": repeats, "max_memory_mib": 64},
			emits: []output{
				{signal: "logs", dropped: "connector_straggler_findings_lost"},
				{signal: "metrics", rule: series},
				{signal: "traces", rule: passed, dropped: "connector_straggler_story_spans_lost"},
			},
			feed: fault(4, "straggler"), moments: 24, quiet: 25 * time.Second,
			filler: func() batch { return longOps(inboxBytes/longText + 1) }, takes: 1,
		},
		{
			name: "desync", factory: desyncconnector.NewFactory, used: "connector_desync_states",
			config: map[string]any{
				"limit_floor": "1s", "start_limit": "1s", "forget": "15s", "check_interval": "250ms", "flush_interval": "1s",
				"repeat_interval": repeats, "max_memory_mib": 4,
			},
			emits: []output{{signal: "logs", dropped: "connector_desync_findings_forgotten"}, {signal: "metrics", rule: series}},
			feed:  fault(20, "hang"), moments: 40, quiet: 60 * time.Second,
			filler: func() batch { return longOps(memory4/2/longText + 1) }, refused: "connector_desync_inbox_dropped", takes: 2,
		},
		{
			name: "clocks", factory: clocksconnector.NewFactory, used: "connector_clocks_edges",
			config: map[string]any{"solve_interval": "500ms", "flush_interval": "1s", "forget_after": "15s"},
			emits:  []output{{signal: "logs", dropped: "connector_clocks_lost"}, {signal: "metrics", rule: series}},
			feed:   fault(20, "clock"), moments: 40, quiet: 60 * time.Second,
			filler: func() batch { return manyNames(inboxBytes / 512) }, takes: 1, probe: 4, logs: true,
		},
		{
			name: "epoch", factory: epochconnector.NewFactory, used: "connector_epoch_observations",
			config: map[string]any{
				"settle": "1s", "silent": "8s", "check_interval": "250ms", "flush_interval": "1s", "repeat_interval": repeats, "max_memory_mib": 4,
				"fleet": map[string]any{"settle": "4s", "silent": "8s"}, "resume": map[string]any{"silent": "8s"},
				"log_lines": map[string]any{"silent": "8s"},
			},
			emits: []output{
				{signal: "logs", dropped: "connector_epoch_findings_lost"},
				{signal: "metrics", rule: series},
				{signal: "traces", dropped: "connector_epoch_spans_lost"},
			},
			left: map[string]int{"traces": 3}, // the saves of the first moment: when they were begun is not known
			feed: both(fault(30, "checkpoint", "resume", "fleet", "log line"), slowSaves), moments: 60, quiet: 60 * time.Second,
			filler: func() batch { return manyResumes(memory4 / 8 / 1024) }, takes: 1,
		},
		{
			name: "findings", factory: findingsconnector.NewFactory, used: "connector_findings_received",
			config: map[string]any{"flush_interval": "500ms", "close_after": "1m"},
			emits: []output{
				{signal: "logs", dropped: "connector_findings_lost"},
				{signal: "metrics", rule: series},
				{signal: "traces", dropped: "connector_findings_lost"},
			},
			feed: found, moments: findings + 8, quiet: 60 * time.Second,
			filler: func() batch { return longFindings(fill) }, filled: fill, takes: 1,
		},
	}
}
