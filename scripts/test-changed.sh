#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the full tier of tests for the packages that differ from a commit, then for their
# direct importers, then for those that the file LEFT names, until the time is up:
#
#   scripts/test-changed.sh SECONDS LEFT [COMMIT]
#
# LEFT, one package a line, gets those that failed and those for which there was no time;
# the latter are printed.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=$1 left=$2 base=${3:-}
export LOCKSTEP_TESTS=full
export CGO_ENABLED=${CGO_ENABLED:-0} # as the Makefile has it: what make test compiled is in the build cache

# Assigned, not piped: a command that fails ends this script.
differ=$(scripts/changed-packages.sh "$base")
before=$(cat "$left" 2>/dev/null || true)
existing=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
wanted=$(printf '%s\n' "$differ" "$before" | awk '!seen[$0]++' | grep -x -F -f <(printf '%s\n' "$existing") || true)
packages=()
[ -z "$wanted" ] || mapfile -t packages <<<"$wanted"
echo "${#packages[@]} packages differ from ${base:-nothing}, import one that does, or were left out before"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
touch "$results/passed" "$results/late"

# judge tests one package and notes its name where it passed or found no time.
judge() {
	local package=$1 time_left=$((limit - SECONDS)) status=0 out
	out=$(mktemp -p "$results" out.XXXXXX)
	((time_left > 0)) || time_left=1
	# The tests end by themselves, so that they tell of failures before; where they hang, or
	# the compiler takes the time, they are ended.
	timeout --kill-after=10 $((time_left + 10)) go test -trimpath -vet=off -timeout "${time_left}s" "$package" >"$out" 2>&1 || status=$?
	if ((status == 124 || status == 137)) || grep -q '^panic: test timed out after' "$out" && ! grep -q '^ *--- FAIL' "$out"; then
		echo "$package" >>"$results/late"
		return
	fi
	((status != 0)) || echo "$package" >>"$results/passed"
	cat "$out"
}

next=0
# Two at a time: as many as there are cores.
while ((next < ${#packages[@]} && SECONDS < limit)); do
	while (($(jobs -r -p | wc -l) >= 2)); do
		wait -n || true
	done
	((SECONDS < limit)) || break
	judge "${packages[next]}" &
	next=$((next + 1))
done
wait

late=$(printf '%s\n' "${packages[@]:next}" | cat "$results/late" - | grep . || true)
failed=$(printf '%s\n' "${packages[@]:0:next}" | grep . | grep -v -x -F -f <(cat "$results/passed" "$results/late") || true)
printf '%s\n' "$failed" "$late" | grep . >"$left" || true
if [ -n "$late" ]; then
	printf 'left out after %d s: %s\n' "$limit" "${late//$'\n'/ }"
fi
if [ -n "$failed" ]; then
	printf 'failed: %s\n' "${failed//$'\n'/ }"
	exit 1
fi
