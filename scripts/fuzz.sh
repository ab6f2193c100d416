#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fuzz targets of the root module.
#
#   scripts/fuzz.sh                        each for FUZZTIME, by default 10s
#   scripts/fuzz.sh COUNT REST [COMMIT]    for COUNT where the package differs from COMMIT; the
#                                          others for REST where go.mod or testdata/ differs,
#                                          else not at all: make test runs their seeds
#   scripts/fuzz.sh -n ...                 only prints which run, and for how long
#
# A time such as 10s or a number of inputs such as 20000x: an input that still runs when
# the time is up fails the target.
#
# An input of FuzzPipelineData and FuzzRingReceiver goes through whole components and takes as
# long as some forty of others. Where the numbers are of inputs, these two get a fortieth, or
# FUZZTIME_WHOLE. COUNT is theirs where any component or engine differs.
#
# A package is compiled once for all of its targets. Two packages are fuzzed at a time, since the
# linker uses one core.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=${CGO_ENABLED:-0} # as the Makefile has it

only_print=
if [ "${1:-}" = -n ]; then
	only_print=1
	shift
fi
count=${1:-${FUZZTIME:-10s}} rest=${2:-} base=${3:-}
for time in "$count" ${rest:+"$rest"}; do
	if ! [[ $time =~ ^[0-9.]+(x|ms|s|m|h)$ ]]; then
		echo "read arguments: got \"$time\"; want a time such as 10s or a number of inputs such as 20000x" >&2
		exit 2
	fi
done
module=$(go list -m)
if [ -n "$rest" ]; then
	changed=$(scripts/changed-packages.sh -d "$base")
	parts=$(grep -E "^$module/(connector|extension|internal|processor|receiver)/" <<<"$changed" || true)
	shared=$(
		git diff --name-only "$base" -- go.mod go.sum testdata 2>/dev/null || echo "$base"
		git ls-files --others --exclude-standard -- testdata
	)
	[ -n "$shared" ] || rest=none
fi

# whole TIME prints what targets over whole components get in place of TIME.
whole() {
	case $1 in
	*x) echo "${FUZZTIME_WHOLE:-$(((${1%x} + 39) / 40))x}" ;;
	*) echo "$1" ;;
	esac
}

# fuzztime PACKAGE TARGET prints the time of a target, or "none".
fuzztime() {
	local time=$count
	case $2 in
	FuzzPipelineData | FuzzRingReceiver)
		[ -z "$rest" ] || [ -n "$parts" ] || time=$rest
		whole "$time"
		return
		;;
	esac
	if [ -n "$rest" ] && ! grep -q -F -x "$1" <<<"$changed"; then
		time=$rest
	fi
	echo "$time"
}

# "folder target" of each.
targets=$(git ls-files -z --cached --others --exclude-standard '*_test.go' |
	grep -z -v -E '^(tools|e2e|bench|lab|distro)/' |
	xargs -0 grep -H -s -o -E '^func Fuzz[A-Za-z0-9_]+' |
	sed 's#/[^/]*:func # #' || true)
if [ -z "$targets" ]; then
	echo "list fuzz targets: got none; want at least one" >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz
workers=$((($(nproc) + 1) / 2))

# fuzz FOLDER runs the targets that the file of this folder lists.
fuzz() {
	local folder=$1 program=$work/${1//\//-} target time failed=0
	# Without symbol tables, as go test links what it runs itself.
	go test -trimpath -c -fuzz . -ldflags '-s -w' -o "$program" "./$folder" || return
	while read -r target time; do
		echo "fuzz ./$folder $target ($time)"
		# Inputs that cover something new are made smaller by count as well: by time that may
		# take a minute each.
		(cd "$folder" && "$program" -test.timeout 10m -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" \
			-test.fuzzminimizetime 100x -test.parallel "$workers" -test.fuzzcachedir "$cache/$module/$folder") || failed=1
	done <"$program.targets"
	rm "$program"
	return "$failed"
}

# note prints what fuzzing a folder printed, and notes the folder where that passed.
note() {
	local out
	out=$(mktemp -p "$work")
	if fuzz "$1" >"$out" 2>&1; then
		echo "./$1" >>"$work/passed"
	fi
	cat "$out"
}

ran=0 left=0 folders=()
while read -r folder target; do
	time=$(fuzztime "$module/$folder" "$target")
	if [ "$time" = none ]; then
		left=$((left + 1))
		continue
	fi
	list=$work/${folder//\//-}.targets
	[ -e "$list" ] || folders+=("$folder")
	echo "$target $time" >>"$list"
	ran=$((ran + 1))
done <<<"$targets"

if [ -n "$only_print" ]; then
	for folder in "${folders[@]}"; do
		sed "s#^#./$folder #" "$work/${folder//\//-}.targets"
	done
	exit
fi
touch "$work/passed"
for folder in "${folders[@]}"; do
	while (($(jobs -r -p | wc -l) >= 2)); do
		wait -n || true
	done
	note "$folder" &
done
wait

echo "fuzz targets run: $ran, left out: $left"
failed=$(printf './%s\n' "${folders[@]}" | grep -v -x -F -f "$work/passed" || true)
if ((ran > 0)) && [ -n "$failed" ]; then
	echo "failed: ${failed//$'\n'/ }" >&2
	exit 1
fi
