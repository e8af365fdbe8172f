#!/bin/sh
# Warns of clients that would start a program that is about to be removed.
#
#   .ci/uninstalling.sh PROGRAM
[ -x "$1" ] || exit 0
# Under sudo the clients are those of the person who typed it.
if [ "$(id -u)" = 0 ] && [ -n "$SUDO_USER" ]; then
	list() { sudo -Hu "$SUDO_USER" "$@"; }
else
	list() { "$@"; }
fi
clients=$(list "$1" install --list 2>/dev/null | awk '$2 == "installed" { printf "%s%s", sep, $1; sep = " " }')
[ -z "$clients" ] ||
	echo "warning: toolcell is still in the config of: $(echo "$clients" | sed 's/ /, /g'). To take it out, install it again and type: toolcell uninstall --all" >&2
