#!/bin/sh
# Installs the MCP client, the servers and the conformance suite of .ci/npm/package.json, which the end-to-end
# tests use.
#
#   .ci/npm.sh DIR
#
# Does nothing when they are there. Without Node.js it prints that the tests skip
# what needs them, and succeeds.
set -eu
manifest=$(dirname "$0")/npm/package.json

if ! command -v npm >/dev/null; then
	echo "toolcell: npm is not installed: the tests with the MCP Inspector, the conformance suite and npm's servers are skipped (apt-get install nodejs npm)"
	exit 0
fi
stamp=$1/installed
! cmp -s "$manifest" "$stamp" || exit 0
mkdir -p "$1"
# Every user of the machine may run them: the tests do so as two.
umask 022
cp "$manifest" "$1/package.json"
# The browser of the tests is Debian's.
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
if ! npm install --no-audit --no-fund --loglevel=error --fetch-retries=1 --prefix "$1"; then
	echo "toolcell: npm could not install them: the tests with the MCP Inspector, the conformance suite and npm's servers are skipped"
	exit 0
fi
cp "$manifest" "$stamp"
