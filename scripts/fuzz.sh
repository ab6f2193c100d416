#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fuzz targets of the root module.
#
#   scripts/fuzz.sh                        each for FUZZTIME, by default 10s
#   scripts/fuzz.sh COUNT REST [COMMIT]    for COUNT where the package differs from COMMIT,
#                                          for REST where it does not
#
# A time such as 10s or a number of inputs such as 20000x: an input that still runs when
# the time is up fails the target.
#
# An input of FuzzPipelineData and FuzzRingReceiver goes through whole components and takes as
# long as some forty of others. Where the numbers are of inputs, these two get a fortieth, or
# FUZZTIME_WHOLE. COUNT is theirs where any component or engine differs.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-${FUZZTIME:-10s}} rest=${2:-}
changed='' parts=''
if [ -n "$rest" ]; then
	changed=$(scripts/changed-packages.sh -d "${3:-}")
	changed=${changed//$(go list -m)/.}
	parts=$(grep -E '^\./(connector|extension|internal|processor|receiver)/' <<<"$changed" || true)
fi

# whole TIME is what targets over whole components get in place of TIME.
whole() {
	case $1 in
	*x) echo "${FUZZTIME_WHOLE:-$(((${1%x} + 39) / 40))x}" ;;
	*) echo "$1" ;;
	esac
}

targets=$(git ls-files -z --cached --others --exclude-standard '*_test.go' |
	grep -z -v -E '^(tools|e2e|bench|lab|distro)/' |
	xargs -0 grep -H -s -o -E '^func Fuzz[A-Za-z0-9_]+' |
	sed 's/:func /:/' || true)
if [ -z "$targets" ]; then
	echo "list fuzz targets: got none; want at least one" >&2
	exit 1
fi

ran=0
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	fuzztime=$count
	case $target in
	FuzzPipelineData | FuzzRingReceiver)
		[ -z "$rest" ] || [ -n "$parts" ] || fuzztime=$rest
		fuzztime=$(whole "$fuzztime")
		;;
	*)
		if [ -n "$rest" ] && ! grep -q -F -x "$package" <<<"$changed"; then
			fuzztime=$rest
		fi
		;;
	esac
	echo "fuzz $package $target ($fuzztime)"
	# Inputs that cover something new are made smaller by count as well: by time that may
	# take a minute each.
	go test -trimpath -run '^$' -fuzz "^${target}\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x "$package"
	ran=$((ran + 1))
done <<<"$targets"
echo "fuzz targets run: $ran"
