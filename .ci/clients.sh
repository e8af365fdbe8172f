#!/bin/sh
# Installs the HTTP clients of .ci/clients.txt, from PyPI, which the end-to-end tests use in
# a sandbox with the host's own Python.
#
#   .ci/clients.sh DIR
#
# Does nothing when they are there. Where that is not possible it prints that the tests
# skip what needs them, and succeeds.
set -eu
wanted=$(dirname "$0")/clients.txt
! cmp -s "$wanted" "$1/installed" || exit 0
rm -rf "$1"
mkdir -p "$1"
umask 022
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { /usr/bin/python3 -m venv "$1/venv" &&
	"$1/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --ignore-installed --requirement "$wanted"; } >"$log" 2>&1; then
	tail -n 3 "$log" >&2
	echo "toolcell: HTTP clients could not be had from PyPI: the tests that use them are skipped"
	exit 0
fi
mv "$1"/venv/lib/python3*/site-packages "$1/packages"
rm -rf "$1/venv" "$1"/packages/pip "$1"/packages/pip-* "$1"/packages/setuptools* "$1"/packages/_distutils_hack "$1"/packages/distutils-precedence.pth "$1"/packages/pkg_resources
cp "$wanted" "$1/installed"
