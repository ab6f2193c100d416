#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the demo with every fault: is the right rank found, in the right class,
# within 10 steps? And without a fault: is nothing found?
#
#   LOCKSTEP_RUNS   runs of each, default 10
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/demo/build.sh
go run ./bench/demo faults -runs "${LOCKSTEP_RUNS:-10}" "$@"
