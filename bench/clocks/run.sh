#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Clocks between network namespaces on one machine, where the truth is known: the
# probe mesh at rising rates, with clocks that change and nodes that lie, and beside
# chronyd and ptp4l. Needs root, iproute2, chrony and linuxptp; changes no clock.
#
#   CASES    which of rates, changes, liars and compare, default all
#   LENGTH   how long each case is measured, default 20s
#   ONLY     runs the cases whose names contain this
#   SEED     of the clocks, default 1
#   RECORD   folder for recordings of what the estimators were given, default none; to judge
#            them once more by other code: bin/bench-clocks-lab replay FILE...
#   PURE     counts only coded pairs whose spacing changed by no more, default all packets
set -euo pipefail
cd "$(dirname "$0")/../.."

mkdir -p bin
go build -o bin/bench-clocks-node ./bench/clocks/node
go build -o bin/bench-clocks-lab ./bench/clocks/lab
missed=0
for c in ${CASES:-rates changes liars compare}; do
	echo "## $c"
	bin/bench-clocks-lab "$c" -length "${LENGTH:-20s}" -only "${ONLY:-}" -seed "${SEED:-1}" -pure "${PURE:-0s}" -record "${RECORD:-}" || missed=1
	echo
done
exit "$missed"
