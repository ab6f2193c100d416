#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What it costs to read one record of CUPTI, with the stand-in of libcupti: no GPU,
# and so nothing of what CUPTI itself costs. Needs gcc and make.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${BUILD:-$PWD/bin/inject}
make -s -C inject/cupti tests BUILD="$out"
dir=$(mktemp -d "${RING_DIR:-/dev/shm}/cupti-cost-XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$out/cupti/bench" "$out/cupti/libcupti.so.13" "$dir"
