#!/bin/sh
# Makes ten recordings, five healthy and five with one slowed rank, each with
# <run>.expected.json beside it, in DIR/healthy-1 to DIR/slow-5. See README.md.
#
#   usage: regenerate.sh DIR
#
# PYTHON names an interpreter that has PyTorch; python3 by default.
set -eu

python=${PYTHON:-python3}
record=$(dirname "$0")/record.py

if [ $# -ne 1 ]; then
	echo "usage: $0 DIR" >&2
	exit 2
fi
if ! "$python" -c 'import torch' 2>/dev/null; then
	echo "$0: import torch with $python: failed; set PYTHON to an interpreter that has PyTorch" >&2
	exit 1
fi

run() {
	name=$1
	shift
	echo "record $name: $*"
	"$python" "$record" --out "$dir/$name" "$@"
}

dir=$1
for n in 1 2 3 4 5; do
	run "healthy-$n" --seed "$n"
done
run slow-1 --seed 11 --slow-rank 5 --slow-place data --slow-ms 60
run slow-2 --seed 12 --slow-rank 2 --slow-place forward --slow-ms 50
run slow-3 --seed 13 --slow-rank 6 --slow-place optimizer --slow-ms 60
run slow-4 --seed 14 --slow-rank 0 --slow-place data --slow-ms 50
run slow-5 --seed 15 --slow-rank 7 --slow-place forward --slow-ms 80
