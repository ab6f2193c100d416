#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs healthy jobs that stand still for long now and then, side by side: a checkpoint,
# evaluations, compilations, breakpoints, a rank that is stopped. Is nothing said to hang?
#
#   LOCKSTEP_FOR   how long each runs, default 10m
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/demo/build.sh
go run ./bench/demo quiet -for "${LOCKSTEP_FOR:-10m}" "$@"
