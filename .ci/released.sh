#!/usr/bin/env bash
# Makes the packages that a release of this commit would have under a version, to try them and
# an upgrade between them: a clone gets the version and its tag. They are never published.
#
#   .ci/released.sh DIR VERSION|next
#
# next is the next patch version. What is not committed is not in the clone.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
dist=$(realpath "$1") version=$2
file=cmd/toolcell/version.go
if [ "$version" = next ]; then
	IFS=.- read -r major minor patch _ < <(sed -n 's/^const version = "\(.*\)"/\1/p' $file)
	version=$major.$minor.$((patch + 1))
fi
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "toolcell: what is not committed is not in the packages" >&2

clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone --quiet --no-tags . "$clone"
cd "$clone"
sed -i "s/^const version = .*/const version = \"$version\"/" $file
git diff --quiet || git -c user.name=toolcell -c user.email=toolcell@users.noreply.github.com commit \
	--quiet --no-gpg-sign --all --message "toolcell $version"
git tag "v$version"
make --no-print-directory release DIST="$dist"
