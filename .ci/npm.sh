#!/bin/sh
# Installs the real MCP client and servers of the end-to-end tests from npm.
#
#   .ci/npm.sh DIR
#
# Does nothing when they are there. Without Node.js it says so and leaves it at
# that: the tests then skip what needs them.
set -eu
packages='@modelcontextprotocol/inspector@2.12.0
@modelcontextprotocol/server-everything@2026.8.31
@modelcontextprotocol/server-filesystem@2026.8.31
@modelcontextprotocol/server-memory@2026.8.31
@modelcontextprotocol/server-sequential-thinking@2026.8.31
@playwright/mcp@0.0.83
@google/gemini-cli@0.61.0
@toon-format/toon@4.4.0'

if ! command -v npm >/dev/null; then
	echo "toolcell: no npm here: the tests with the MCP Inspector and npm's servers are skipped (apt-get install nodejs npm)"
	exit 0
fi
stamp=$1/installed
[ "$(cat "$stamp" 2>/dev/null)" != "$packages" ] || exit 0
mkdir -p "$1"
# Every user of the machine may run them: the tests do so as two.
umask 022
# The browser of the tests is Debian's.
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
# shellcheck disable=SC2086 # one word a package
if ! npm install --no-audit --no-fund --loglevel=error --fetch-retries=1 --prefix "$1" $packages; then
	echo "toolcell: npm could not install them: the tests with the MCP Inspector and npm's servers are skipped"
	exit 0
fi
echo "$packages" >"$stamp"
