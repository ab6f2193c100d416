#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What one pair of begin and end costs the program that marks a scope, through the
# shared library as a program loads it. Needs gcc and make. NVTX is called through
# its own header where there is one: NVTX_INCLUDE, or bin/nvtx-venv (`make
# bin/nvtx-venv`); else through a client of ours that makes the same call.
#   PAIRS=... how many of each kind (1,000,000), and a 25th of them on a lane of the
#   usual size.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${BUILD:-$PWD/bin/inject}
make -s -C inject/nccl BUILD="$out"
include=${NVTX_INCLUDE:-}
if [[ -z $include ]]; then
	include=$(find bin/nvtx-venv/ -type d -path "*/include/nvtx3" 2>/dev/null | head -n 1 || true)
	include=${include%/nvtx3}
fi
flags=()
if [[ -n $include ]]; then
	flags=(-DHAVE_NVTX -isystem "$include")
fi
mkdir -p "$out"
gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Iinject "${flags[@]}" bench/scope/cost.c -ldl -pthread -o "$out/scope_cost"
base=$(mktemp -d "${RING_DIR:-/dev/shm}/scope-cost-XXXXXX")
trap 'rm -rf "$base"' EXIT
# The rate of scopes is the lane's size, so that a lane of the usual one takes long
# for few pairs, and a large one writes to memory that no cache holds.
cost() { # records pairs
	local dir=$base/$1
	mkdir "$dir"
	LOCKSTEP_DIR=$dir LOCKSTEP_RING_LANES=2 LOCKSTEP_RING_RECORDS=$1 NVTX_INJECTION64_PATH=$PWD/bin/libnccl-profiler-lockstep.so \
		"$out/scope_cost" "$PWD/bin/libnccl-profiler-lockstep.so" "$2" "$1"
}
pairs=${PAIRS:-1000000}
failed=0
cost 16384 $((pairs / 25 + 1)) || failed=1
cost 1048576 "$pairs" || failed=1
exit $failed
