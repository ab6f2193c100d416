#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the GPU kit in bare systems of other distributions, without a network, as root and as a
# user without rights, and prints what was shown in each:
#
#   gpukit/chroot.sh KIT [ROOT...]
#
# A ROOT is a folder with a system; it is not changed. Without one, systems of old and new glibc
# are made by debootstrap, in ${XDG_CACHE_HOME:-~/.cache}/lockstep/roots. One whose mirror cannot
# be reached (UBUNTU_MIRROR names another) is left out, and at least one must be there.
# GPU_KIT_PYTHON names an interpreter with PyTorch that is run in each as well, and GPU_KIT_BIND
# the folders and files that it needs, joined by colons. Needs root.
set -euo pipefail

# Debian's and Ubuntu's, glibc 2.31, 2.35 and 2.41.
suites=(bullseye jammy trixie)

kit=$(realpath "${1:?got no kit; want the folder that make gpu-kit makes}")
shift
if [ "$(id -u)" != 0 ]; then
	echo "run the kit in other systems: got user $(id -un); want root" >&2
	exit 2
fi

# make_root SUITE: with Python; "complete" marks a root that is whole.
make_root() {
	local root=$cache/$1
	if [ ! -e "$root/complete" ]; then
		rm -rf --one-file-system "$root"
		mkdir -p "$root"
		local mirror=
		[ "$1" != jammy ] || mirror=${UBUNTU_MIRROR-}
		debootstrap --variant=minbase --include=python3 "$1" "$root/system" ${mirror:+"$mirror"} >"$root/log" 2>&1 || return 1
		touch "$root/complete"
	fi
	echo "$root/system"
}

roots=("$@")
if ((${#roots[@]} == 0)); then
	base=${XDG_CACHE_HOME:-}
	[[ $base = /* ]] || base=$HOME/.cache # a relative one is invalid by the XDG specification
	cache=$base/lockstep/roots
	command -v debootstrap >/dev/null || {
		echo "make a system: got no debootstrap; want the Debian package of this name, or folders as arguments" >&2
		exit 2
	}
	for suite in "${suites[@]}"; do
		if root=$(make_root "$suite"); then
			roots+=("$root")
		else
			echo "left out $suite: $(tail -n 1 "$cache/$suite/log")"
		fi
	done
fi
((${#roots[@]} > 0)) || {
	echo "run the kit in other systems: got no system; want one at least" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

# inside ROOT USER [PYTHON]: one run, in namespaces of its own, so that nothing stays mounted.
inside() {
	local root=$1 user=$2 python=${3-} out="$work/out"
	rm -rf "$out"
	install -d -m 777 "$out"
	# shellcheck disable=SC2016 # the inner shell expands
	KIT=$kit ROOT=$root USER_ID=$user PYTHON=$python OUT=$out LAYERS=$work/layers BIND=${GPU_KIT_BIND-} \
		unshare --mount --net --pid --fork --kill-child bash -euo pipefail -c '
		mkdir -p "$LAYERS"
		mount -t tmpfs none "$LAYERS"
		mkdir "$LAYERS"/{up,work,root}
		mount -t overlay -o "lowerdir=$ROOT,upperdir=$LAYERS/up,workdir=$LAYERS/work" none "$LAYERS/root"
		cd "$LAYERS/root"
		bind() {
			if [ -d "$1" ]; then mkdir -p ".$2"; else mkdir -p ".${2%/*}" && : >>".$2"; fi
			mount --rbind "$1" ".$2"
		}
		bind "$KIT" "/a kit"
		mount -o remount,bind,ro "./a kit"
		bind "$OUT" /out
		mount -t proc none proc
		mount -t sysfs -o ro none sys
		mount -t tmpfs -o mode=1777 none tmp
		# Of the devices those alone that each system has.
		for device in null zero full random urandom; do : >>"dev/$device"; mount --bind "/dev/$device" "dev/$device"; done
		mkdir -p dev/shm && mount -t tmpfs -o mode=1777 none dev/shm
		IFS=:
		for path in $BIND; do bind "$path" "$path"; done
		# As another user needs to reach what is bound.
		[ -z "$BIND" ] || chmod go+x ./root
		ip link set lo up 2>/dev/null || true
		set -- /out
		[ -z "$PYTHON" ] || export PYTHON
		[ -n "$PYTHON" ] || unset PYTHON
		cd /
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp ${PYTHON+"PYTHON=$PYTHON"} \
			chroot "--userspec=$USER_ID:$USER_ID" "$LAYERS/root" "/a kit/check.sh" "$@"
	' >"$work/log" 2>&1
}

failed=0
one() { # NAME ROOT USER [PYTHON]
	local name=$1 status=0
	shift
	inside "$@" || status=$?
	printf '%-44s exit %d: %s\n' "$name" "$status" "$(tail -n 1 "$work/log")"
	sed -n -E 's/^(python|pytorch|c library) +/    \1 /p' "$work/log" | cut -c 1-120
	if ((status != 0)); then
		failed=$((failed + 1))
		sed 's/^/    /' "$work/log"
	elif [ -n "${VERBOSE-}" ]; then
		sed 's/^/    /' "$work/log"
	fi
}

for root in "${roots[@]}"; do
	root=$(realpath "$root")
	name=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$root/etc/os-release")
	one "$name, root" "$root" 0
	one "$name, a user" "$root" 65534
	[ -z "${GPU_KIT_PYTHON-}" ] || one "$name, root, PyTorch" "$root" 0 "$GPU_KIT_PYTHON"
done
((failed == 0)) || {
	echo "run the kit in other systems: got $failed runs that failed; want none" >&2
	exit 1
}
