#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the Go reader makes of real C writers: exact loss, SIGKILL in mid-write,
# and lapped writers (half of the seconds on lanes of their own, half on the
# shared one). loss.sh [RUNS] [SECONDS], 100 and 120 where not given.
set -eu
cd "$(dirname "$0")/../.."
result=$(LOCKSTEP_RUNS=${1:-100} LOCKSTEP_LAPPED_MS=${2:-120}000 \
    go test -count=1 -timeout 30m -v -run '^(TestLossIsExact|TestKilled|TestLapped)$' ./internal/ring |
    { grep -E 'of [0-9]+ runs|lapped,|^ok|FAIL|Error' || true; } |
    sed -E 's/^ +[a-z_]+\.go:[0-9]+: //')
echo "$result"
echo "$result" | grep -q '^ok'
