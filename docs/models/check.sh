#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the models with Spin, and fails where one does not come out as its line says.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
# check NAME MODEL CLAIM holds|violated [spin's -D options]
check() {
	local name=$1 model=$2 claim=$3 want=$4 got states
	shift 4
	(
		cd "$work"
		rm -f pan* ./*.trail
		spin "$@" -a "$OLDPWD/$model" >/dev/null
		gcc -w -O2 -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c
		./pan -a -m1000000 -N "$claim" >out 2>&1
	) || true
	got=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$work/out")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/out")
	case $got in
	0) got=holds ;;
	'' | *[!0-9]*) got=failed ;;
	*) got=violated ;;
	esac
	# A search that did not reach the end shows nothing.
	if grep -q 'max search depth too small\|out of memory\|Search not completed' "$work/out" && [ "$got" = holds ]; then
		got=incomplete
	fi
	printf '%-34s %-10s %10s states\n' "$name" "$got" "$states"
	if [ "$got" != "$want" ]; then
		echo "  got $got; want $want" >&2
		failed=1
	fi
}

check "tracker before barrier" tracker_before_barrier.pml safe violated
check "barrier, then marker" barrier_then_marker.pml safe holds
check "  and it does name the new save" barrier_then_marker.pml idle violated
check "overwrite in place" overwrite_in_place.pml safe violated
check "fresh directory" fresh_directory.pml safe holds
check "  and it does commit" fresh_directory.pml idle violated
check "node-local, each its own pointer" node_local_pointer.pml safe violated
check "node-local, the least of all" node_local_pointer.pml safe holds -DMEET
check "  and it does move on" node_local_pointer.pml idle violated -DMEET
check "  with the old save dropped at once" node_local_pointer.pml safe violated -DMEET -DEAGER
check "bilateral, 2 domains" bilateral.pml safe holds
check "bilateral, 3 domains" bilateral.pml safe holds -DN=3
check "  and it does commit" bilateral.pml idle violated
check "  with the old save dropped at once" bilateral.pml safe violated -DEAGER
exit $failed
