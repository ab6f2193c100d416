#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the demo's job hang in every way: is the right rank named, in the right class, within
# 5 s of the stall limit?
#
#   LOCKSTEP_RUNS   runs of each, default 10
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/demo/build.sh
go run ./bench/demo hangs -runs "${LOCKSTEP_RUNS:-10}" "$@"
