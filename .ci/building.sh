#!/usr/bin/env bash
# Builds, and shows on a terminal how far it is: a first build takes minutes.
#
#   .ci/building.sh WHAT go build -v …
set -o pipefail
what=$1
shift
terminal=
[ ! -t 2 ] || [ "$TERM" = dumb ] || terminal=yes

show() {
	[ -z "$terminal" ] || printf '\r\033[K%.78s' "$1" >&2
}

"$@" 2>&1 | {
	packages=0 started=
	while IFS= read -r line; do
		case $line in
		"go: downloading "*) step="fetching ${line#go: downloading }" ;;
		*[!A-Za-z0-9./_~-]* | "") step= ;; # an error, or a warning of the compiler
		*) step="$((packages += 1)) packages compiled: $line" ;;
		esac
		if [ -z "$step" ]; then
			show ""
			printf '%s\n' "$line" >&2
			continue
		fi
		if [ -z "$started" ] && { [ "$packages" = 0 ] || [ "$packages" = 9 ]; }; then # not after a small change
			show ""
			printf 'toolcell: building %s; the first time takes minutes\n' "$what" >&2
			started=yes
		fi
		show "$step"
	done
	show ""
}
