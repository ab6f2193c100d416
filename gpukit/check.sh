#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Shows on this machine what Lockstep does with its GPU:
#
#   check.sh [FOLDER] [FLAG...]    the report goes to FOLDER (default: gpu-report)
#   check.sh -h                    lists the flags
#
# PYTHON names the interpreter that has PyTorch; without it, the first python3 that has
# it. TMPDIR names a folder for scratch files. Needs a shell and coreutils alone. The exit
# status is 0 where no check failed, 1 where one did, 2 where nothing could be run.
set -u

fail() {
	echo "gpu-kit: $*" >&2
	exit 2
}

self=$(readlink -f -- "$0") || fail "find the kit: got no path for $0"
kit=$(dirname -- "$self")
case ${1--} in
-*) ;;
*)
	out=$1
	shift
	set -- -out "$out" "$@"
	;;
esac

[ -f "$kit/gpu-check" ] && [ -f "$kit/MANIFEST" ] || fail "open the kit: got no gpu-check and MANIFEST in $kit; want a folder that make gpu-kit made"
want=
while read -r mark name value _; do
	[ "$mark $name" != "# architecture" ] || want=$value
done <"$kit/MANIFEST"
have=$(uname -m)
[ "$have" = "$want" ] || fail "start: this machine is $have; the kit is for $want: make one with GPU_KIT_ARCH=$have make gpu-kit"

# has_torch PROGRAM: a program that hangs is none.
has_torch() {
	timeout -k 1 10 "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' >/dev/null 2>&1 </dev/null
}

if [ -z "${PYTHON-}" ]; then
	for candidate in python3 "${VIRTUAL_ENV:-/nowhere}/bin/python" "${CONDA_PREFIX:-/nowhere}/bin/python" \
		python3.14 python3.13 python3.12 python3.11 python3.10 python \
		/opt/venv/bin/python /opt/conda/bin/python /usr/local/bin/python3 /usr/bin/python3; do
		candidate=$(command -v "$candidate" 2>/dev/null) || continue
		if has_torch "$candidate"; then
			PYTHON=$candidate
			break
		fi
	done
fi
if [ -n "${PYTHON-}" ]; then
	command -v "$PYTHON" >/dev/null || fail "find Python: got no program $PYTHON; want PYTHON= an interpreter that has PyTorch"
	set -- -python "$PYTHON" "$@"
fi

# The folder may have lost its modes on its way, or lie where nothing may be run.
runs() { output=$("$1/gpu-check" -list 2>&1 >/dev/null); }

if runs "$kit"; then
	exec "$kit/gpu-check" "$@"
fi
copy=
pid=
clean() {
	[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null
	[ -z "$pid" ] || wait "$pid" 2>/dev/null
	[ -z "$copy" ] || rm -rf -- "$copy"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
why=
for scratch in "${TMPDIR:-/tmp}" /var/tmp /dev/shm "$PWD"; do
	copy=$(mktemp -d -- "$scratch/lockstep-gpu-kit-XXXXXX" 2>/dev/null) || {
		copy=
		why="$why; $scratch: cannot be written"
		continue
	}
	if cp -R -- "$kit/." "$copy" 2>/dev/null && chmod -R u+rwX "$copy" && chmod u+x "$copy/gpu-check" "$copy/standin/lockstep-demo-worker"; then
		if runs "$copy"; then
			"$copy/gpu-check" "$@" &
			pid=$!
			wait "$pid"
			status=$?
			pid=
			exit "$status"
		fi
		output=$(printf '%s' "$output" | tr '\n' ' ' | cut -c 1-200)
		why="$why; $scratch: runs no program (mounted noexec?): $output"
	else
		why="$why; $scratch: has no room for the kit (or part of it is missing)"
	fi
	rm -rf -- "$copy"
	copy=
done
fail "start gpu-check: cannot run it in $kit$why: set TMPDIR to a folder with 300 MB where programs may run"
