#!/bin/sh
# Installs the MCP servers of .ci/pypi/requirements.txt, which the end-to-end tests
# use, into a virtual environment.
#
#   .ci/pypi.sh DIR
#
# Does nothing when they are there. Where that is not possible it prints that the
# tests skip what needs them, and succeeds.
set -eu
wanted=$(dirname "$0")/pypi/requirements.txt

stamp=$1/installed
! cmp -s "$wanted" "$stamp" || exit 0
mkdir -p "$(dirname "$1")"
# Every user of the machine may run them: the tests do so as two.
umask 022
rm -rf "$1"
if ! python3 -m venv "$1" || ! "$1/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"; then
	rm -rf "$1"
	echo "toolcell: PyPI's servers could not be installed: the tests with them are skipped (apt-get install python3-venv)"
	exit 0
fi
cp "$wanted" "$stamp"
