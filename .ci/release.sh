#!/usr/bin/env bash
# Makes what a release has: for each architecture a .deb and a tarball with the
# same files, and SHA256SUMS of all.
#
#   .ci/release.sh DIR VERSION TAGS ARCH…
#
# The times in them are SOURCE_DATE_EPOCH, the last commit's unless set, owners
# are root and orders are sorted: the same commit, built with the same Go and
# libraries, gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$1 version=$2 tags=$3
shift 3
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

# Debian's versions begin with a number, and - has a meaning in them.
debian=${version#v}
debian=${debian//-/+}
case $debian in [0-9]*.*) ;; *) debian="0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).$debian" ;; esac

umask 022
rm -rf "$dist"
mkdir -p "$dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What can be run here makes the files that are the same everywhere.
host=$(go env GOHOSTARCH)

build() { # ARCH FILE
	local cc=gcc triplet=
	case $1 in
	amd64) triplet=x86_64-linux-gnu ;;
	arm64) triplet=aarch64-linux-gnu ;;
	esac
	[ "$1" = "$host" ] || cc=$triplet-gcc
	command -v "$cc" >/dev/null || {
		echo "toolcell: no $cc here. Please type:" >&2
		echo "    sudo dpkg --add-architecture $1 && sudo apt-get update && sudo apt-get install gcc-$triplet libc6-dev-$1-cross libseccomp-dev:$1" >&2
		exit 1
	}
	GOARCH=$1 CGO_ENABLED=1 CC=$cc PKG_CONFIG_LIBDIR=/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig \
		go build -buildvcs=false -trimpath -tags "$tags" -o "$2" \
		-ldflags "-s -w -buildid= $(.ci/built-from.sh) -extldflags '-static -Wl,--build-id=none'" ./cmd/toolcell
}

# The licences of all that is linked in, one after the other.
licences() {
	go list -deps -tags "$tags" -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/toolcell | sort -u |
		while read -r module release dir; do
			for file in "$dir"/LICENSE* "$dir"/LICENCE* "$dir"/COPYING* "$dir"/NOTICE*; do
				[ -f "$file" ] || continue
				echo "==== $module $release: ${file##*/}"
				cat "$file"
				echo
			done
		done
	echo "==== libseccomp, linked from the system's: LGPL-2.1; glibc: LGPL-2.1"
	cat /usr/share/doc/libseccomp-dev/copyright
}

tree() { # ARCH DIR: everything as it is installed
	local root=$2 doc=$2/usr/share/doc/toolcell
	mkdir -p "$root/usr/bin" "$doc"
	build "$1" "$root/usr/bin/toolcell"
	[ -e "$work/toolcell" ] || build "$host" "$work/toolcell"
	make -s install-extras BIN="$work/toolcell" DESTDIR="$root" PREFIX=/usr ZSH=vendor-completions
	cp README.md "$doc/"
	cp -r docs "$doc/docs"
	cp LICENSE "$doc/copyright"
	licences | gzip -9n >"$doc/third-party-licenses.gz"
	find "$root" -type d -exec chmod 755 {} +
	find "$root" -type f -exec chmod 644 {} +
	chmod 755 "$root/usr/bin/toolcell"
	find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

deb() { # ARCH ROOT
	mkdir "$2/DEBIAN"
	cat >"$2/DEBIAN/control" <<EOF
Package: toolcell
Version: $debian
Architecture: $1
Maintainer: The toolcell authors
Homepage: https://github.com/toolcell/toolcell
Installed-Size: $(($(find "$2/usr" -type f -printf "%s+")1023 >> 10))
Section: utils
Priority: optional
Recommends: python3, uidmap
Description: Python in a rootless sandbox, as an MCP server with one tool
 The code that a model writes runs in a fresh sandbox, without Podman, Docker
 or a daemon, and calls the user's other MCP servers through the host: the
 model is told of one tool instead of hundreds.
EOF
	(cd "$2" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	find "$2/DEBIAN" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
	touch -d "@$SOURCE_DATE_EPOCH" "$2"
	dpkg-deb --root-owner-group -Zxz --build "$2" "$dist/toolcell_${debian}_$1.deb" >/dev/null
	rm -r "$2/DEBIAN"
}

tarball() { # ARCH ROOT
	local name=toolcell-$version-linux-$1
	mv "$2/usr" "$work/$name"
	touch -d "@$SOURCE_DATE_EPOCH" "$work/$name"
	tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=posix \
		--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cf - "$name" | gzip -9n >"$dist/$name.tar.gz"
}

for arch; do
	tree "$arch" "$work/$arch"
	deb "$arch" "$work/$arch"
	tarball "$arch" "$work/$arch"
done
(cd "$dist" && sha256sum -- *.deb *.tar.gz >SHA256SUMS)
ls -l "$dist"
