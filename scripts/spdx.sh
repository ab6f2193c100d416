#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lists the source files that git tracks and that lack a line with their license, and
# fails where there are any; with --fix it adds the line. Generated files are left out:
# their generators own them.
set -euo pipefail
cd "$(dirname "$0")/.."

line='SPDX-License-Identifier: Apache-2.0'

# missing prints the files without the line among their first five.
missing() {
	git ls-files -z --cached --others --exclude-standard -- '*.go' '*.c' '*.h' '*.py' '*.sh' '*.pml' \
		'Makefile' '*/Makefile' '*.mk' '.ci/run' ':!testdata' ':!*/testdata/*' ':!distro/*.go' |
		while IFS= read -r -d '' file; do
			[ -e "$file" ] || continue # deleted, and git does not know it yet
			head -n 5 -- "$file" | grep -q -F -e "$line" -e 'Code generated' || printf '%s\n' "$file"
		done
}

# add writes the line at the top of a file, below a line that names its interpreter, and
# apart from the comment that follows.
add() {
	case $1 in
	*.go | *.c | *.h) printf '// %s\n\n' "$line" ;;
	*.pml) printf '/* %s */\n\n' "$line" ;;
	*)
		if head -n 1 "$1" | grep '^#!'; then
			printf '# %s\n#\n' "$line"
			tail -n +2 "$1"
			return
		fi
		printf '# %s\n\n' "$line"
		;;
	esac
	cat "$1"
}

case ${1:-} in
"" | --fix) ;;
*)
	echo "check licenses: got $1; want --fix or nothing" >&2
	exit 2
	;;
esac
if [ "${1:-}" = --fix ]; then
	missing | while IFS= read -r file; do
		text=$(mktemp)
		add "$file" >"$text"
		# Into the file that is there: its mode stays.
		cat "$text" >"$file"
		rm "$text"
	done
fi
files=$(missing)
if [ -n "$files" ]; then
	printf 'check licenses: want a line "%s" near the top (scripts/spdx.sh --fix adds it):\n%s\n' "$line" "$files" >&2
	exit 1
fi
echo "every source file names its license"
