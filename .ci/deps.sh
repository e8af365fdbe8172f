#!/usr/bin/env bash
# Makes sure that what `make run` (deps.sh build), `make lint` (deps.sh lint), `make
# test` (deps.sh test), `make test-pythons` (deps.sh pythons), `make test-data` (deps.sh
# data), `make walk` (deps.sh walk) or a benchmark (deps.sh bench) needs is there. Missing Debian
# packages are installed where we may; otherwise the command that installs them is
# printed, and nothing is done.
set -euo pipefail

missing=()
need() { missing+=("$1"); }

# Go from 1.21 on fetches the version that go.mod names. Older ones cannot read it.
new_enough() { # GO
	local version
	version=$(cd / && "$1" version 2>/dev/null) || return 1
	! [[ $version =~ go1\.([0-9]+) ]] || [ "${BASH_REMATCH[1]}" -ge 21 ]
}
if ! new_enough go; then
	this=$(cd / && go version 2>/dev/null) || true
	echo "toolcell: Go 1.21 or newer is needed${this:+, and this is ${this#go version }}; get it from https://go.dev/dl," \
		"or on Debian 12 with: sudo apt-get install -t bookworm-backports golang-go" >&2
	if new_enough /usr/local/go/bin/go; then
		echo "hint: there is one in /usr/local/go: export PATH=/usr/local/go/bin:\$PATH" >&2
	fi
	exit 1
fi
command -v gcc >/dev/null || need gcc
printf '#include <stdio.h>\n' | gcc -E - >/dev/null 2>&1 || need libc6-dev
command -v pkg-config >/dev/null || need pkg-config
pkg-config --exists libseccomp 2>/dev/null || need libseccomp-dev
# The host's own Python stands in where no image can be pulled.
[ -x /usr/bin/python3 ] || need python3
# An ordinary user's sandbox gets ids of its own with these.
command -v newuidmap >/dev/null || need uidmap

if [ "${1:-build}" = lint ]; then
	command -v shellcheck >/dev/null || need shellcheck
	python3 -c 'import ensurepip' 2>/dev/null || need python3-venv
elif [ "${1:-build}" != build ]; then
	python3 -c 'import ensurepip' 2>/dev/null || need python3-venv
	command -v mmdebstrap >/dev/null || need mmdebstrap
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || need debian-archive-keyring
	command -v docker-registry >/dev/null || need docker-registry
	command -v htpasswd >/dev/null || need apache2-utils
	[ -e /usr/lib/python3/dist-packages/numpy ] || need python3-numpy
	[ -e /usr/lib/python3/dist-packages/matplotlib ] || need python3-matplotlib
	[ -e /usr/lib/python3/dist-packages/cairosvg ] || need python3-cairosvg
	[ -e /usr/lib/python3/dist-packages/pandas ] || need python3-pandas
	# One of the HTTP clients that are tried in a sandbox.
	command -v curl >/dev/null || need curl
	# What we unpack is compared with what it does.
	command -v umoci >/dev/null || need umoci
	# Completion is tried in the shells, and the manual page is checked.
	command -v zsh >/dev/null || need zsh
	command -v fish >/dev/null || need fish
	command -v mandoc >/dev/null || need mandoc
fi
if [ "${1:-build}" = pythons ]; then
	command -v mvn >/dev/null || need maven
	command -v unshare >/dev/null || need util-linux
fi
if [ "${1:-build}" = data ]; then
	python3 -m pip --version >/dev/null 2>&1 || need python3-pip
fi
if [ "${1:-build}" = walk ]; then
	command -v tmux >/dev/null || need tmux
	command -v skopeo >/dev/null || need skopeo
	command -v npm >/dev/null || need npm
fi
if [ "${1:-build}" = bench ]; then
	command -v podman >/dev/null || need podman
	command -v runc >/dev/null || need runc # crun takes no mixture of cgroup versions
	command -v bwrap >/dev/null || need bubblewrap
	command -v skopeo >/dev/null || need skopeo
	[ -e /usr/lib/python3/dist-packages/pandas ] || need python3-pandas
fi

[ ${#missing[@]} -gt 0 ] || exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if ! command -v apt-get >/dev/null; then
	echo "toolcell: missing: ${missing[*]} (Debian's package names); install them with your package manager" >&2
	exit 1
elif [ "$(id -u)" = 0 ]; then
	as=()
elif sudo -n true 2>/dev/null; then
	as=(sudo)
else
	echo "toolcell: missing: ${missing[*]}. Please type:" >&2
	echo "    sudo ${install[*]}" >&2
	exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "toolcell: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# The package lists may be missing or old: only then is an update needed.
"${as[@]}" "${install[@]}" >"$log" 2>&1 || {
	"${as[@]}" apt-get update >/dev/null
	"${as[@]}" "${install[@]}" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
}
