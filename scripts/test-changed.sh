#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the full tier of tests for the packages that differ from a commit and for their
# direct importers, until the time is up, and prints what was left out:
#
#   scripts/test-changed.sh SECONDS [COMMIT]
set -euo pipefail
cd "$(dirname "$0")/.."

limit=$1 base=${2:-}
export LOCKSTEP_TESTS=full

mapfile -t packages < <(scripts/changed-packages.sh "$base")
with_tests=()
if ((${#packages[@]} > 0)); then
	mapfile -t with_tests < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${packages[@]}" | grep . |
		grep -v -E '/internal/(metadata|metadatatest)$')
fi
echo "${#with_tests[@]} packages differ from ${base:-nothing}, or import one that does"

# A few at a time: go test uses both cores within a batch, and the clock is looked at between them.
failed=0 batch=4
for ((i = 0; i < ${#with_tests[@]}; i += batch)); do
	left=$((limit - SECONDS))
	if ((left <= 0)); then
		printf 'left out after %d s: %s\n' "$limit" "${with_tests[*]:i}"
		break
	fi
	go test -trimpath -timeout 20m "${with_tests[@]:i:batch}" || failed=1
done
exit $failed
