#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the job pays: iteration time with the plugin absent and at each level, and
# what the training thread feels as workers become more.
#
#   ROUNDS   runs of each variant, default 20
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/demo/build.sh
gcc -O2 -std=gnu11 -Wall -Wextra -Werror -shared -fPIC -o bin/empty-profiler.so bench/demo/empty/empty.c
go build -o bin/bench-demo ./bench/demo
bin/bench-demo cost -rounds "${ROUNDS:-20}" "$@"
echo
bin/bench-demo cost -pace -steps 60 -rounds "${ROUNDS:-20}" "$@"
echo
bin/bench-demo pause
