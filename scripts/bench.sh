#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every Go benchmark of the root module, then the side-by-side
# comparisons in bench/.
set -euo pipefail
cd "$(dirname "$0")/.."

go test -run '^$' -bench "${BENCH:-.}" -benchmem ./...
shopt -s nullglob
for script in bench/*.sh bench/*/*.sh; do
	echo "== $script"
	bash "$script"
done
