#!/usr/bin/env bash
# Makes what a release has: for each architecture a tarball, a .deb, a .rpm, a wheel, a
# package for npm and a list of components, all with the same binary; then npm's main
# package, the entry of the MCP registry, and SHA256SUMS of all.
#
#   .ci/release.sh DIR VERSION TAGS ARCH…
#
# The times in them are SOURCE_DATE_EPOCH, the last commit's unless set, owners are root
# and orders are sorted: the same commit, built with the same Go and the same libraries,
# gives the same bytes. Go is the one that go.mod names, since it also compresses.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$1 version=$2 tags=$3
shift 3
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
GOTOOLCHAIN=$(go env GOVERSION)
export GOTOOLCHAIN
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0

# What is at a tag is a release; anything else is a build on the way to one.
described=$(git describe --tags --match 'v[0-9]*' --long --dirty --abbrev=8 2>/dev/null) || {
	described=$(git describe --always --dirty --abbrev=8 --exclude '*')
	described=none-$(git rev-list --count HEAD)-g$described
}

umask 022
rm -rf "$dist"
mkdir -p "$dist"
dist=$(realpath "$dist")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What can be run here makes the files that are the same everywhere.
host=$(go env GOHOSTARCH)
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$work/pack" ./.ci/pack
GOBIN=$work CGO_ENABLED=0 go install -trimpath "$NFPM"

pack() { # FLAG… ACTION ARCH
	"$work/pack" -source "$version" -described "$described" -dist "$dist" -licenses "$work/licenses" "$@"
}
debian=$(pack version debian)

triplet() { # ARCH
	case $1 in
	amd64) echo x86_64-linux-gnu ;;
	arm64) echo aarch64-linux-gnu ;;
	esac
}

build() { # ARCH FILE
	local cc=gcc triplet
	triplet=$(triplet "$1")
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

# The C libraries that are in the binary of an architecture.
libraries() { # ARCH
	local libc=libc6-dev:$1
	[ "$1" = "$host" ] || libc=libc6-dev-$1-cross
	# shellcheck disable=SC2016 # dpkg-query's own format language
	dpkg-query -W -f 'libseccomp=${Version},' "libseccomp-dev:$1"
	# The package for cross compilers has cross and a number after glibc's version.
	# shellcheck disable=SC2016
	dpkg-query -W -f 'glibc=${Version}\n' "$libc" | sed 's/cross[0-9]*$//'
}

# The licenses of all that is linked in, one after the other.
licenses() {
	go list -deps -tags "$tags" -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/toolcell | sort -u |
		while read -r module release dir; do
			for file in "$dir"/LICENSE* "$dir"/LICENCE* "$dir"/COPYING* "$dir"/NOTICE*; do
				[ -f "$file" ] || continue
				echo "==== $module $release: ${file##*/}"
				cat "$file"
				echo
			done
		done
	echo "==== Go's standard library $(go env GOVERSION): LICENSE"
	cat "$(go env GOROOT)/LICENSE"
	for library in libseccomp-dev libc6-dev; do
		echo "==== $library, linked from the system's: LGPL-2.1"
		cat "/usr/share/doc/$library/copyright"
	done
}

tree() { # ARCH DIR: everything as it is installed
	local root=$2 doc=$2/usr/share/doc/toolcell
	mkdir -p "$root/usr/bin" "$doc"
	build "$1" "$root/usr/bin/toolcell"
	[ -e "$work/toolcell" ] || build "$host" "$work/toolcell"
	make -s install-extras BIN="$work/toolcell" DESTDIR="$root" PREFIX=/usr
	cp README.md "$doc/"
	cp -r docs "$doc/docs"
	cp LICENSE "$doc/copyright"
	gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
	gzip -9nc "$work/licenses" >"$doc/third-party-licenses.gz"
	find "$root" -type d -exec chmod 755 {} +
	find "$root" -type f -exec chmod 644 {} +
	chmod 755 "$root/usr/bin/toolcell"
	find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

system_packages() { # ARCH ROOT
	local packager
	mkdir "$2/nfpm"
	cp .ci/nfpm/* "$2/nfpm"
	find "$2/nfpm" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
	for packager in deb rpm; do
		(cd "$2" && ARCH=$1 VERSION=$debian "$work/nfpm" package --config nfpm/nfpm.yaml --packager $packager --target "$dist" >/dev/null)
	done
}

licenses >"$work/licenses"
for arch; do
	root=$work/$arch
	tree "$arch" "$root"
	system_packages "$arch" "$root"
	binary=$root/usr/bin/toolcell
	pack -tree "$root/usr" tarball "$arch"
	pack -binary "$binary" wheel "$arch"
	pack -binary "$binary" npm-platform "$arch"
	pack -binary "$binary" -libraries "$(libraries "$arch")" sbom "$arch"
done
pack npm
pack server-json
(cd "$dist" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
ls -l "$dist"
