#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails where a file that git tracks is larger than 256 KiB or a program: what is built
# belongs into bin/, and recordings are kept small.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=$((256 * 1024))
large=$(git ls-files -z | xargs -0 stat -c '%s %n' | awk -v limit=$limit '$1 > limit')
programs=$(git ls-files -z | LC_ALL=C xargs -0 grep -l -a -m 1 -P '^\x7fELF[\x01\x02]' || true)
if [[ -n $large$programs ]]; then
	printf 'check tracked files: got\n%s\n%s\nwant at most %d bytes, and no programs\n' "$large" "$programs" $limit >&2
	exit 1
fi
echo "no file that git tracks is large or a program"
