#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the full tier of tests for the packages that differ from a commit and for their
# direct importers, until the time is up:
#
#   scripts/test-changed.sh SECONDS LEFT [COMMIT]
#
# Packages for which there was no time are printed and written to the file LEFT, one a
# line. What stands in LEFT before is tested first, whether it differs or not.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=$1 left=$2 base=${3:-}
export LOCKSTEP_TESTS=full

# Assigned, not piped: a command that fails ends this script.
differ=$(scripts/changed-packages.sh "$base")
before=$(cat "$left" 2>/dev/null || true)
existing=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
wanted=$(printf '%s\n' "$before" "$differ" | awk '!seen[$0]++' | grep -x -F -f <(printf '%s\n' "$existing") || true)
packages=()
[ -z "$wanted" ] || mapfile -t packages <<<"$wanted"
echo "${#packages[@]} packages differ from ${base:-nothing}, import one that does, or were left out before"

failed=0
remaining=("${packages[@]}")
while ((${#remaining[@]} > 0)); do
	time_left=$((limit - SECONDS))
	((time_left > 0)) || break
	# Two at a time: as many as there are cores, and the clock is looked at often.
	batch=("${remaining[@]:0:2}")
	status=0
	timeout --signal=INT --kill-after=10 "$time_left" go test -trimpath -timeout 20m "${batch[@]}" || status=$?
	if ((SECONDS >= limit && status != 0)); then
		break
	fi
	((status == 0)) || failed=1
	remaining=("${remaining[@]:2}")
done
printf '%s\n' "${remaining[@]}" | grep . >"$left" || true
if ((${#remaining[@]} > 0)); then
	printf 'left out after %d s: %s\n' "$limit" "${remaining[*]}"
fi
exit $failed
