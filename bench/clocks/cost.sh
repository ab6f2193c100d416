#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the probe mesh costs: CPU and packets a second for 1,000 pairs, at 1, 10 and
# 100 probes a second to each neighbour, on loopback. Linux; needs no privileges.
# See bench/README.md for how to read what it prints.
#
#   NODES    hosts, default 12, which makes 120 pairs
#   RATES    default 1,10,100
#   LENGTH   how long each rate is measured, default 10s
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/cost" ./bench/clocks/cost
"$work/cost" -nodes "${NODES:-12}" -rates "${RATES:-1,10,100}" -length "${LENGTH:-10s}"
