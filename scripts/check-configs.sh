#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Reports for each configuration of a folder whether a collector accepts it, and whether it
# still runs some seconds after its start:
#
#   scripts/check-configs.sh FOLDER [SECONDS]
#
# PROGRAM names another collector than bin/otelcol-lockstep. The exit status is 0 where all
# that were accepted run, 1 where one ended by itself, 2 where nothing could be checked.
# Look first at where the configurations send.
set -euo pipefail

usage() {
	echo "check configurations: $*; want scripts/check-configs.sh FOLDER [SECONDS]" >&2
	exit 2
}

(($# >= 1 && $# <= 2)) || usage "got $# arguments"
folder=$1
limit=${2:-3}
program=${PROGRAM:-$(dirname "$0")/../bin/otelcol-lockstep}
[ -d "$folder" ] || usage "got $folder, which is no folder"
[[ $limit =~ ^[1-9][0-9]*$ ]] || usage "got $limit for SECONDS, which is no number above 0"
[ -x "$program" ] || usage "cannot run $program: make distro compiles it"
shopt -s nullglob
configs=("$folder"/*.yaml "$folder"/*.yml)
((${#configs[@]} > 0)) || usage "got no .yaml file in $folder"

log=$(mktemp)
child=
trap 'rm -f "$log"; [ -z "$child" ] || kill "$child" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# reason prints the error in a log from its first line on, without the list of valid types.
reason() {
	sed -n '/^Error: /,$p' "$log" | grep -v '^[0-9/]* .*collector server run finished' |
		sed 's/(valid values: [^)]*)//' | grep . | sed 's/^/    /' || true
}

accepted=0 stopped=0
for config in "${configs[@]}"; do
	name=$(basename "$config")
	if ! "$program" validate --config "$config" >"$log" 2>&1; then
		printf '%-32s refused\n' "$name"
		grep -a '^Hint: ' "$log" | sed 's/^/    /' || true
		reason
		continue
	fi
	accepted=$((accepted + 1))
	status=0
	timeout --signal=TERM --kill-after=10 "$limit" "$program" --config "$config" >"$log" 2>&1 &
	child=$!
	wait "$child" || status=$?
	child=
	# timeout reports 124 where the collector was still there.
	if [ "$status" = 124 ]; then
		printf '%-32s accepted, runs\n' "$name"
	else
		stopped=$((stopped + 1))
		printf '%-32s accepted, stops with status %s\n' "$name" "$status"
		reason
	fi
done
echo "$accepted of ${#configs[@]} accepted, $((accepted - stopped)) of those run for $limit s"
((stopped == 0))
