#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clock_skew beside Jaeger's clock skew adjuster, on the same spans with known true
# times. See bench/README.md for how to read what it prints. Flags are passed on:
#
#   -runs 5 -hosts 16 -traces 9000 -seconds 30 -seed 1
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/skew" .
"$work/skew" "$@"
