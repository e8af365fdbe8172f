#!/usr/bin/env bash
# Installs a release on a runner: the first step of action.yml.
#
# VERSION is a release or "latest", IMAGE what code runs on, RELEASES where they are.
set -euo pipefail
: "${RELEASES:=https://github.com/toolcell/toolcell/releases}"

fail() {
	echo "::error::$*"
	exit 1
}

[ "$(uname -s)" = Linux ] || fail "toolcell runs on Linux, and this runner is $(uname -s): use runs-on: ubuntu-24.04"
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) fail "no toolcell is built for $(uname -m)" ;;
esac

fetch() { # URL FILE
	curl --fail --silent --show-error --location --proto-redir =https --retry 3 --max-time 300 --output "$2" "$1" ||
		fail "$1 could not be fetched"
}

version=${VERSION:-latest} image=${IMAGE:-host}
version=${version#v}
[[ $image != *$'\n'* ]] || fail "the image has a line end in its name"
if [ "$version" = latest ]; then
	address=$(curl --fail --silent --show-error --head --location --retry 3 --max-time 60 --output /dev/null --write-out '%{url_effective}' "$RELEASES/latest") ||
		fail "the newest release of toolcell could not be found out"
	version=${address##*/v}
fi
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+\.[0-9]+)?$ ]] || fail "\"$version\" is no version like 0.1.0"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=toolcell-$version-linux-$arch
fetch "$RELEASES/download/v$version/$name.tar.gz" "$work/$name.tar.gz"
fetch "$RELEASES/download/v$version/SHA256SUMS" "$work/SHA256SUMS"
(cd "$work" && grep -F "  $name.tar.gz" SHA256SUMS | sha256sum --check --strict --quiet) || fail "$name.tar.gz is not what SHA256SUMS says"

# The sums come from where the file does. The attestation says which workflow made it.
if [ "$RELEASES" = https://github.com/toolcell/toolcell/releases ] && command -v gh >/dev/null && [ -n "${GH_TOKEN:-}" ]; then
	gh attestation verify "$work/$name.tar.gz" --repo toolcell/toolcell >/dev/null || fail "$name.tar.gz was not made by toolcell's workflow"
fi

to=${RUNNER_TOOL_CACHE:-$HOME}/toolcell/$version
mkdir -p "$to"
tar -C "$to" --strip-components=1 -xzf "$work/$name.tar.gz"
echo "$to/bin" >>"$GITHUB_PATH"
echo "TOOLCELL_IMAGE=$image" >>"$GITHUB_ENV"
echo "version=$version" >>"$GITHUB_OUTPUT"
"$to/bin/toolcell" version
