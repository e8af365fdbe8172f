#!/usr/bin/env bash
# Makes a virtual environment, .venv, with the tools that pyproject.toml pins, from
# PyPI. Ends with status 1 where that is not possible, and says why.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sha256sum pyproject.toml)
[ "$(cat .venv/made-from 2>/dev/null)" != "$wanted" ] || exit 0
python3 -c 'import venv, ensurepip' 2>/dev/null || {
	echo "toolcell: Python's venv is missing: sudo apt-get install python3-venv" >&2
	exit 1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
rm -rf .venv
# Only pip from 25.1 on knows dependency groups.
{
	python3 -m venv .venv &&
		.venv/bin/pip install --quiet --disable-pip-version-check 'pip>=25.1' &&
		.venv/bin/pip install --quiet --disable-pip-version-check --group dev
} >"$log" 2>&1 || {
	tail -n 3 "$log" >&2
	echo "toolcell: ruff, mypy and pytest could not be had from PyPI" >&2
	rm -rf .venv
	exit 1
}
echo "$wanted" >.venv/made-from
