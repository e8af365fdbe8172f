#!/bin/sh
# Builds the real images that the end-to-end tests run on: Debian userlands with
# Python, each packed as an OCI layout.
#
#   .ci/images.sh DIR [VERSION]...
#
# leaves DIR/python-3.14, DIR/python-3.13 and DIR/python-3.11, or only the
# versions named. Version "minimal" is 3.13 with a small part of its library,
# "data" is 3.13 with numpy, pandas, matplotlib, scikit-learn and more, 1.3 GB in eight
# layers, without bytecode; "plotly" is 3.13 with plotly and its renderer, kaleido,
# from PyPI, which needs pip. Not Debian's, in /usr/local and
# without bytecode as in the official images, are
#
#   3.10  as Maven Central has it, on Debian; it lacks sqlite3 and lzma
#   3.12  the same, whole
#   musl  3.13, compiled here with musl as in the Alpine images, beside busybox;
#         it lacks bz2, lzma and readline (eight minutes of processor time)
#
# Existing layouts are kept: a layout gets its name only when it is complete.
# Works as root, and as an ordinary user who has subuids.
# shellcheck disable=SC2016 # mmdebstrap's hooks are scripts: their $1 is not ours
set -eu

if [ $# -lt 1 ]; then
	echo "usage: $0 DIR [3.14|3.13|3.12|3.11|3.10|musl|minimal|data|plotly]..." >&2
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

# userland makes the tar of a userland: a suite of Debian with some packages. More
# arguments are for mmdebstrap.
userland() {
	suite=$1 packages=$2 uri=$(mirror)
	shift 2
	# A release file past its date is no attack here: the packages stay signed,
	# and an old but whole userland tests the same code.
	mmdebstrap --quiet --variant=essential --include="$packages" \
		--aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
		"$@" "$suite" "$work/userland.tar" ${uri:+"$uri"}
}

# userlandMaven makes the tar of a userland with the newest build of a version that a
# registry has, and Debian packages that it needs. Its files have lost their modes and
# links.
userlandMaven() {
	version=$1 build=org.bytedeco:cpython:$2:jar:linux-x86_64 sum=$3 packages=$4
	if ! command -v mvn >/dev/null; then
		echo "$0: mvn is missing: apt-get install maven" >&2
		exit 1
	fi
	mvn -q -B -Dstyle.color=never dependency:get -Dtransitive=false -Dartifact="$build" >&2
	mvn -q -B -Dstyle.color=never dependency:copy -Dartifact="$build" -DoutputDirectory="$work" >&2
	mv "$work"/cpython-*.jar "$work/python.jar"
	echo "$sum  $work/python.jar" | sha256sum --check --quiet -
	python3 -m zipfile -e "$work/python.jar" "$work/jar"

	tree=$work/jar/org/bytedeco/cpython/linux-x86_64
	mkdir -p "$work/python/bin" "$work/python/lib"
	cp "$tree/bin/python$version" "$work/python/bin"
	chmod 755 "$work/python/bin/python$version"
	ln -s "python$version" "$work/python/bin/python3"
	cp -r "$tree/lib/python$version" "$tree"/lib*.so.* "$work/python/lib"
	rm -rf "$work/python/lib/python$version/test" "$work/python/lib/python$version"/config-*
	tar -C "$work/python" --owner=0 --group=0 -cf "$work/python.tar" .
	userland bookworm "$packages" \
		--customize-hook="tar-in $work/python.tar /usr/local" --customize-hook='chroot "$1" ldconfig'
}

# userlandMusl makes the tar of a userland without any of glibc: .ci/musl.sh
# compiles it, in a Debian that is then thrown away.
userlandMusl() {
	uri=$(mirror)
	if [ -z "$uri" ]; then
		echo "$0: the sources for musl come from this host's Debian mirror, and it has none" >&2
		exit 1
	fi
	tools=gcc,libc6-dev,linux-libc-dev,musl-tools,make,pkgconf,perl,tcl,autoconf,automake,libtool,libltdl-dev
	mmdebstrap --variant=apt --include="$tools,dpkg-dev,bzip2,xz-utils,busybox-static" \
		--aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
		--customize-hook="upload $repo/.ci/musl.sh /musl.sh" --customize-hook='chroot "$1" sh /musl.sh 3.13' \
		--customize-hook="download /userland.tar $work/userland.tar" \
		trixie /dev/null "deb $uri trixie main" "deb-src $uri trixie main" >"$work/log" 2>&1 || {
		tail -n 50 "$work/log" >&2
		exit 1
	}
}

# build makes the layout of one version.
build() {
	version=$1 strip=
	case $version in
	3.14 | 3.13 | 3.12 | 3.11 | 3.10 | musl | minimal | data | plotly) ;;
	*)
		echo "$0: no image of Python $version is known (3.14, 3.13, 3.12, 3.11, 3.10 are)" >&2
		exit 2
		;;
	esac
	[ ! -e "$dir/python-$version" ] || return 0
	if ! command -v mmdebstrap >/dev/null; then
		echo "$0: mmdebstrap is missing: apt-get install mmdebstrap" >&2
		exit 1
	fi

	echo "building python-$version" >&2
	work=$(mktemp -d "$dir/.build-XXXXXX")
	case $version in
	# libstdc++, which wheels may expect, is in the official slim images too.
	3.14) userland forky python3.14-minimal,python3,libstdc++6 ;;
	3.13) userland trixie python3,libstdc++6 ;;
	3.11) userland bookworm python3,libstdc++6 ;;
	3.10)
		userlandMaven 3.10 3.10.8-1.5.8 2f101b1aa06effdbda3c318c1728b13f22b571707c7b7704abaf5d19a33aa981 \
			zlib1g,libuuid1
		;;
	3.12)
		userlandMaven 3.12 3.12.1-1.5.10 a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd \
			zlib1g,libuuid1,libbz2-1.0,liblzma5,libsqlite3-0,libncursesw6,libreadline8,libnsl2,libstdc++6
		;;
	musl) userlandMusl ;;
	minimal) userland trixie python3-minimal ;;
	plotly)
		# The last kaleido that brings its browser along.
		userland trixie python3,python3-packaging,python3-tenacity \
			--customize-hook='python3 -m pip install --quiet --root-user-action=ignore --no-deps --target "$1/usr/lib/python3/dist-packages" plotly==5.24.1 kaleido==0.2.1'
		;;
	data)
		strip=-strip
		science=python3-numpy,python3-pandas,python3-matplotlib,python3-sklearn,python3-seaborn,python3-statsmodels
		more=python3-numba,python3-tables,python3-xarray,python3-dask,python3-notebook,g++,gfortran
		userland trixie "$science,$more"
		;;
	esac
	(cd "$repo" && go run ./rootfs/internal/mkimage -tag "$version" $strip "$work/userland.tar" "$work/layout")
	# Another build may have won; its layout is as good as this one.
	mv -T "$work/layout" "$dir/python-$version" 2>/dev/null || [ -e "$dir/python-$version" ]
	rm -rf "$work"
	work=
}

for version in "$@"; do
	build "$version"
done
