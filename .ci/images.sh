#!/bin/sh
# Builds the real images that the end-to-end tests run on: Debian userlands with
# Python, each packed as an OCI layout.
#
#   .ci/images.sh DIR [VERSION]...
#
# leaves DIR/python-3.14, DIR/python-3.13 and DIR/python-3.11, or only the
# versions named. Version "minimal" is 3.13 with a small part of its library,
# "data" is 3.13 with numpy, pandas, matplotlib, scikit-learn and more, 1.3 GB in eight
# layers, without bytecode. What is there already is kept: a layout gets its name
# only when it is complete. Works as root, and as an ordinary user who has
# subuids.
set -eu

if [ $# -lt 1 ]; then
	echo "usage: $0 DIR [3.14|3.13|3.11|minimal|data]..." >&2
	exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- 3.14 3.13 3.11

repo=$(cd "$(dirname "$0")/.." && pwd)
work=

# cleanup removes what an unfinished build has left behind.
cleanup() {
	if [ -n "$work" ]; then rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# mirror prints the URI of the host's own Debian mirror, from either format of
# apt's sources; nothing on a host that is not Debian.
mirror() {
	grep -q '^ID=debian$' /etc/os-release 2>/dev/null || return 0
	for f in /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$f" ] || continue
		case $f in
		*.sources) sed -n 's/^[Uu][Rr][Ii]s:[[:space:]]*\([^[:space:]]*\).*/\1/p' "$f" ;;
		*) sed -n 's/^deb[[:space:]]\{1,\}\(\[[^]]*\][[:space:]]\{1,\}\)\{0,1\}\([^[:space:]]*\).*/\2/p' "$f" ;;
		esac
	done | grep '^https\{0,1\}://' | grep '/debian/\{0,1\}$' | head -n 1
}

# build makes the layout of one version.
build() {
	version=$1 strip=
	case $version in
	3.14) suite=forky packages=python3.14-minimal,python3 ;;
	3.13) suite=trixie packages=python3 ;;
	3.11) suite=bookworm packages=python3 ;;
	minimal) suite=trixie packages=python3-minimal ;;
	data)
		suite=trixie strip=-strip
		packages=python3-numpy,python3-pandas,python3-matplotlib,python3-sklearn,python3-seaborn,python3-statsmodels,python3-numba,python3-tables,python3-xarray,python3-dask,python3-notebook,g++,gfortran
		;;
	*)
		echo "$0: no Debian release is known for Python $version (3.14, 3.13, 3.11 are)" >&2
		exit 2
		;;
	esac
	[ ! -e "$dir/python-$version" ] || return 0
	if ! command -v mmdebstrap >/dev/null; then
		echo "$0: mmdebstrap is missing: apt-get install mmdebstrap" >&2
		exit 1
	fi

	echo "building python-$version from Debian $suite" >&2
	work=$(mktemp -d "$dir/.build-XXXXXX")
	# A release file past its date is no attack here: the packages stay signed,
	# and an old but whole userland tests the same code.
	mmdebstrap --quiet --variant=essential --include="$packages" \
		--aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
		"$suite" "$work/userland.tar" $(mirror)
	(cd "$repo" && go run ./rootfs/internal/mkimage -tag "$version" $strip "$work/userland.tar" "$work/layout")
	# Another build may have won; its layout is as good as this one.
	mv -T "$work/layout" "$dir/python-$version" 2>/dev/null || [ -e "$dir/python-$version" ]
	rm -rf "$work"
	work=
}

for version in "$@"; do
	build "$version"
done
