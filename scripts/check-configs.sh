#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Reports for each configuration of a folder whether a collector accepts it, and whether it
# still runs some seconds after its start:
#
#   scripts/check-configs.sh FOLDER [SECONDS]
#
# PROGRAM names another collector than bin/otelcol-lockstep. The exit status is 0 where
# all that were accepted run, else 1. Nothing that they send leaves unless their endpoints
# do: look at them first.
set -euo pipefail

folder=${1:?check configurations: want a folder with .yaml files}
limit=${2:-3}
program=${PROGRAM:-$(dirname "$0")/../bin/otelcol-lockstep}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# reason prints the error in a log, without what surrounds it.
reason() {
	grep -a -i -E '^Error:|error: |rror decoding|unknown type|cannot ' "$log" | tail -n 1 | sed 's/(valid values: [^)]*)//' | cut -c1-180
}

accepted=0 total=0 stopped=0
for config in "$folder"/*.yaml; do
	total=$((total + 1))
	name=$(basename "$config")
	if ! "$program" validate --config "$config" >"$log" 2>&1; then
		printf '%-32s refused\n' "$name"
		grep -a '^Hint: ' "$log" | cut -c1-250 | sed 's/^/    /' || true
		printf '    %s\n' "$(grep -a -o -E "unknown type: [^(]*" "$log" | head -n 1 || reason)"
		continue
	fi
	accepted=$((accepted + 1))
	status=0
	timeout --signal=TERM "$limit" "$program" --config "$config" >"$log" 2>&1 || status=$?
	# timeout reports 124 where the collector was still there.
	if [ "$status" = 124 ]; then
		printf '%-32s accepted, runs\n' "$name"
	else
		stopped=$((stopped + 1))
		printf '%-32s accepted, stops with status %s\n    %s\n' "$name" "$status" "$(reason)"
	fi
done
echo "$accepted of $total accepted, $((accepted - stopped)) of those run for $limit s"
((stopped == 0))
