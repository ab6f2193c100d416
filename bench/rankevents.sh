#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the rank_events receiver costs, on one core each: events from a ring to
# folded summaries, to spans, and how the mapping to spans compares with what the
# bare calls of pdata take in the same run. See bench/README.md.
#
#   COUNT       runs of each, default 5
#   BENCHTIME   time of each run, default 1s
set -euo pipefail
cd "$(dirname "$0")/.."

count=${COUNT:-5}
benchtime=${BENCHTIME:-1s}

run() {
	go test -run '^$' -bench "$1" -benchtime "$benchtime" -count "$count" -cpu "$2" "$3" | grep -E '^(Benchmark|cpu:)'
}

echo "# ring to folded summaries (level summary); ring to spans (level collectives)"
run 'Fold|Spans' 1 ./receiver/rankeventsreceiver
echo "# what folding allocates, per step of 256 operations, once a rank has been read for some time"
run 'FoldSteady' 1 ./internal/rankevents
echo "# operation to pdata over the bare calls of pdata (x-floor)"
run 'OpsOverFloor' 1 ./internal/otelmap
echo "# one bracket into the fit of a GPU's clock"
run 'Add' 1 ./internal/gpuclock
