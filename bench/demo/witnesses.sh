#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the demo with every fault and the witnesses of every row of
# docs/capabilities.md, and prints what each came to.
#
#   LOCKSTEP_RUNS   runs of each pair, default 3
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/demo/build.sh
go run ./bench/demo witnesses -runs "${LOCKSTEP_RUNS:-3}" "$@"
