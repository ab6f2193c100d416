#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the GPU kit, a folder that travels to a machine with a GPU:
#
#   gpukit/build.sh FOLDER
#
# Needs Go, make and bin/zig (`make gpu-kit` makes it). GPU_KIT_ARCH is the machine's
# architecture, x86_64 or aarch64; without it, this machine's. The folder appears in one step.
set -euo pipefail
cd "$(dirname "$0")/.."

# The oldest C library that wheels of PyTorch since 2.6 run on (manylinux_2_28).
glibc=2.28
# What the folder may take, KiB.
limit=$((40 * 1024))

out=$(realpath -m "${1:?got no folder; want the one to make}")
arch=${GPU_KIT_ARCH:-$(uname -m)}
case $arch in
x86_64) goarch=amd64 ;;
aarch64) goarch=arm64 ;;
*)
	echo "make the kit: got architecture $arch; want x86_64 or aarch64" >&2
	exit 2
	;;
esac
cc="$PWD/bin/zig/bin/python -m ziglang cc -target $arch-linux-gnu.$glibc"
build=$PWD/bin/gpu-kit-build/$arch

kit=$out.new
rm -rf "$kit"
mkdir -p "$kit/bin" "$kit/lib" "$kit/standin" "$build"
trap 'rm -rf "$kit"' EXIT

# Without symbol tables and debug information, which has paths of this machine.
c() { make --no-print-directory -s "CC=$cc" "CFLAGS=-O2 -s -Wno-unused-command-line-argument" "$@"; }
c -C inject/nccl BUILD="$build" DEST="$kit/lib" plugin
c -C inject/cupti BUILD="$build" mock
c -C demo OUT="$build/demo" DEST="$kit/standin" all
cp "$build/cupti/libcupti-standin.so" "$kit/standin"

commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || commit=$commit.modified
version=$(sed -n 's/^  version: *//p' builder-config.yaml)
go_build() { CGO_ENABLED=0 GOOS=linux GOARCH=$goarch go build -trimpath -buildvcs=auto "$@"; }
# Beside the kit, where the next build finds them and links nothing if nothing has changed.
go_build -ldflags "-s -w -X main.version=$version -X main.commit=$commit" -o "$build/gpu-check" ./gpukit
go_build -ldflags '-s -w' -o "$build/lockstep" ./cmd/lockstep
install -m 755 "$build/gpu-check" "$kit"
# A third of its size; gpu-check unpacks it. Without the time of day.
if [ ! "$build/lockstep.gz" -nt "$build/lockstep" ]; then
	gzip -9 -n -c "$build/lockstep" >"$build/lockstep.gz.new"
	mv "$build/lockstep.gz.new" "$build/lockstep.gz"
fi
install -m 644 "$build/lockstep.gz" "$kit/bin"

# Without what git ignores, such as compiled Python.
copy() { # FOLDER PATTERN TO
	mkdir -p "$3"
	git ls-files -z --cached --others --exclude-standard -- "$1/$2" | while IFS= read -r -d '' file; do
		install -D -m 644 "$file" "$3/${file#"$1/"}"
	done
}
copy inject/python 'lockstep_scope/*.py' "$kit/python"
copy gpukit/programs '*.py' "$kit/programs"
install -m 755 gpukit/check.sh "$kit/check.sh"
install -m 644 gpukit/README.md LICENSE "$kit"

{
	printf '# version %s\n# commit %s\n# architecture %s\n# glibc %s\n' "$version" "$commit" "$arch" "$glibc"
	(cd "$kit" && find . -type f ! -name MANIFEST -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum)
} >"$build/MANIFEST"
mv "$build/MANIFEST" "$kit/MANIFEST"

size=$(du -sk --apparent-size "$kit" | cut -f1)
if ((size > limit)); then
	echo "make the kit: got $size KiB; want at most $limit" >&2
	exit 1
fi
rm -rf "$out.old"
[ ! -e "$out" ] || mv "$out" "$out.old"
mv "$kit" "$out"
rm -rf "$out.old"
echo "made $out: $size KiB, version $version, commit $commit, $arch"
