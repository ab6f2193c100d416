#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares the reader of profiler traces with Python's json and the same joins.
# See bench/README.md for how to read what it prints.
#
#   RUNS            runs of each side, default 5
#   ENLARGE         size of the enlarged trace in copies of the largest, default 10; 0 leaves it out
#   PYTHON          interpreter, default python3
#   LOCKSTEP_DATA   folder with real traces in kineto-single/, default ../shared/data
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
runs=${RUNS:-5}
enlarge=${ENLARGE:-10}
data=${LOCKSTEP_DATA:-../shared/data}

if ! command -v "$python" >/dev/null; then
	echo "skipped: the comparison needs $python" >&2
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/parse" ./bench/parse
status=0

compare() {
	"$work/parse" compare -runs "$runs" -python "$python" -script bench/parse.py "$1" || status=1
}

echo "# a recording of this repository; mostly the start of both programs"
compare testdata/recordings/slow/rank0.json.gz

largest=$(find "$data/kineto-single" -name '*.json.gz' -printf '%s %p\n' 2>/dev/null | sort -n | tail -1 | cut -d' ' -f2-)
if [ -z "$largest" ]; then
	echo "skipped: no real traces in $data/kineto-single (set LOCKSTEP_DATA to the folder that holds them)"
	largest=testdata/recordings/slow/rank0.json.gz
else
	echo "# a real trace of one rank"
	compare "$largest"
fi

if [ "$enlarge" -gt 0 ]; then
	echo "# the same, $enlarge times as long, not compressed"
	"$python" bench/enlarge.py "$largest" "$work/enlarged.json" "$enlarge"
	compare "$work/enlarged.json"
fi
exit "$status"
