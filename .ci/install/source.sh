#!/usr/bin/env bash
# Upgrades what was built in a clone, as it says itself: what `make install` has installed, and
# the copy that clients start of a program that stays in the clone. In a home of its own, with
# the modules and the compiled packages of this one.
#
#   .ci/install/source.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
case=$PWD/.ci/install
# shellcheck source=/dev/null
. .ci/install/expect.sh

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
mkdir "$work/home"
git clone --quiet --no-tags . "$work/origin"
for name in GOCACHE GOMODCACHE GOPROXY GOSUMDB; do export "$name=$(go env $name)"; done
for name in $(compgen -e | grep -E '^(XDG|TOOLCELL)_'); do unset "$name"; done
export HOME=$work/home PATH=$work/home/.local/bin:$PATH
clone=$HOME/toolcell
stable=$HOME/.local/share/toolcell/bin/toolcell

toolcell() {
	case $way in
	clone) "$clone/bin/toolcell" "$@" ;;
	*) command toolcell "$@" ;;
	esac
}

# version sets the version of the clone that others pull from.
version() { # VERSION
	sed -i "s/^const version = .*/const version = \"$1\"/" "$work/origin/cmd/toolcell/version.go"
	git -C "$work/origin" -c user.name=toolcell -c user.email=toolcell@users.noreply.github.com commit \
		--quiet --allow-empty --no-gpg-sign --all --message "toolcell $1"
}

entry() { # VERSION
	local program=$HOME/.local/bin/toolcell
	[ "$way" != clone ] || program=$stable
	expect "$program $1" python3 "$case/client.py" "$HOME/.cursor/mcp.json"
}

version 0.1.0
git clone --quiet "$work/origin" "$clone"
n=0
for way in install clone; do
	from=$SECONDS
	echo "source: $way"
	make -s -C "$clone" build
	[ $way != install ] || make -s -C "$clone" install PREFIX="$HOME/.local" >/dev/null
	mkdir -p "$HOME/.cursor"
	expect '*' toolcell install cursor --env TOOLCELL_IMAGE=host
	entry "0.1.$n"
	version "0.1.$((n += 1))"
	command=$(typed)
	cd "$clone"
	expect '*' bash -ec "$command"
	cd "$HOME"
	expect "toolcell 0.1.$n (*" toolcell version
	entry "0.1.$n"
	expect '*' toolcell uninstall cursor
	rmdir "$HOME/.cursor"
	expect '*' toolcell purge --yes
	[ $way != install ] || make -s -C "$clone" uninstall PREFIX="$HOME/.local"
	echo "  $((SECONDS - from)) s"
done
# make uninstall leaves folders, and Go has files of its own.
left=$(cd "$HOME" && find . \( -path ./toolcell -o -path ./go -o -path ./.config/go \) -prune -o ! -type d -print)
[ -z "$left" ] || fail "this is left: $left"
[ -z "$failed" ]
