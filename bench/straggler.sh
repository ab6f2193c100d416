#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the straggler engine costs, beside its aims: exact top 8 of the K-S scores, the
# whole diagnosis, growth with the ranks, and memory. See bench/README.md.
#
#   COUNT       runs of each, of which the median counts, default 3
#   BENCHTIME   time of each run, default 1s
#   RANKS       ranks of the largest job, default 16384; 0 leaves it out
set -euo pipefail
cd "$(dirname "$0")/.."

count=${COUNT:-3}
benchtime=${BENCHTIME:-1s}
ranks=${RANKS:-16384}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

run() {
	if ! go test -short -run '^$' -bench "$1" -cpu 1 -count "$2" -benchtime "$3" "$4" >>"$out"; then
		cat "$out"
		exit 1
	fi
}

# The number before a unit on a benchmark's lines: the median of its runs.
value() {
	awk -v name="$1" -v unit="$2" '$1 == name { for (i = 2; i <= NF; i++) if ($i == unit) print $(i - 1) }' "$out" |
		sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'
}

row() { # what, value, unit, aim
	local said=""
	if [[ -n $4 && $2 != - ]]; then
		said=$(awk -v got="$2" -v aim="$4" 'BEGIN { print got <= aim ? "met" : "missed" }')
	fi
	printf '%-58s %10s %-7s %6s %s\n' "$1" "${2%.*}" "$3" "$4" "$said"
}

run 'TopK|Pairwise' "$count" "$benchtime" ./internal/ks
run 'Diagnosis' "$count" "$benchtime" ./internal/straggler
# The operations of all ranks, and the engine, in one process that may have 1 GB.
GOMEMLIMIT=900MiB LOCKSTEP_BENCH_RANKS=$ranks run 'Growth' 1 1x ./internal/straggler

grep -m 1 '^cpu:' "$out"
printf '%-58s %10s %-7s %6s\n' "" measured "" aim
for job in tight pace noise nobody barrier clusters ties; do
	row "exact top 8 of the K-S scores, 16,384 x 128, $job" "$(value "BenchmarkTopK/$job" ms)" ms 100
done
row "all pairs of them, from those of 2,048" "$(value BenchmarkPairwise/workers=2048 ms-16384)" ms ""
for method in lockstep kair; do
	aim=""
	if [[ $method == lockstep ]]; then aim=300; fi
	row "diagnosis of 120,000 operations, CPU, method $method" "$(value "BenchmarkDiagnosis/$method" cpu-ns/operation)" ns/op "$aim"
done
for n in 64 1024 "$ranks"; do
	if [[ $n == 0 ]]; then continue; fi
	name=BenchmarkGrowth/ranks=$n
	row "steps of $n ranks, CPU" "$(value "$name" cpu-ns/operation)" ns/op ""
	row "kept after six of them" "$(value "$name" B/rank)" B/rank ""
	aim=""
	if [[ $n == 16384 ]]; then aim=1024; fi
	row "most memory of the process" "$(value "$name" peak-MiB)" MiB "$aim"
done
