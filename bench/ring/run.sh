#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What one event costs its producer, against sockets and files; and lapped writers
# for a minute on each kind of lane. Needs gcc, make and a file system in memory.
#   COST=0 leaves out the cost; LAPPED=0 the writers, else LAPPED are the seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${BUILD:-$PWD/bin/inject}
make -s -C inject all BUILD="$out"
if [[ ${COST:-1} != 0 ]]; then
	gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Iinject bench/ring/cost.c "$out/libring.a" -pthread -o "$out/ring_cost"
	dir=$(mktemp -d "${RING_DIR:-/dev/shm}/ring-cost-XXXXXX")
	trap 'rm -rf "$dir"' EXIT
	"$out/ring_cost" "$dir"
fi
if [[ ${LAPPED:-60} != 0 ]]; then
	"$out/lapped" "${LAPPED:-60}"
fi
