#!/usr/bin/env bash
# Builds what a release has in two systems that are made for it, in different folders, and
# compares every byte.
#
#   .ci/twice.sh [ARCH…]
#
# Needs root, mmdebstrap, and Debian's packages where this machine's apt has them. Builds the
# last commit, twice from nothing: half an hour on two processors.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASE=trixie # as in .github/workflows/release.yml
archs=${*:-$(go env GOHOSTARCH)}
[ "$(id -u)" = 0 ] || { echo "toolcell: only root can make the systems to build in" >&2 && exit 1; }
[ -z "$(git status --porcelain)" ] || echo "toolcell: what is not committed is not built" >&2

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
.ci/sources.sh $RELEASE >"$work/sources"

packages=ca-certificates,git,make,gcc,libc6-dev,pkg-config,libseccomp-dev,python3,uidmap,golang-go
foreign=()
case " $archs " in
*" arm64 "*)
	packages+=,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross,libseccomp-dev:arm64
	foreign=(--architectures='amd64,arm64')
	;;
esac

build() { # NAME FOLDER
	local root=$work/$1
	mmdebstrap --quiet --mode=root --variant=minbase --aptopt='APT::Install-Recommends "false"' "${foreign[@]}" \
		--include=$packages $RELEASE "$root" "$work/sources"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
	git clone --quiet . "$root$2"
	mkdir "$root/modules"
	# shellcheck disable=SC2016 # for the shell inside
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root GOTOOLCHAIN=auto ARCHS="$archs" \
		GOPROXY="file:///modules/cache/download,$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" \
		unshare --mount --propagation private sh -ec '
		mount --bind -o ro "$1" "$2/modules"
		mount -t proc proc "$2/proc"
		mount --rbind /dev "$2/dev"
		exec chroot "$2" sh -ec "git config --global --add safe.directory \"*\"; cd $3; make release ARCHS=\"$ARCHS\" >/build.log 2>&1 || { tail -n 50 /build.log; exit 1; }"
	' sh "$(go env GOMODCACHE)" "$root" "$2"
	mv "$root$2/dist" "$work/dist-$1"
	rm -rf --one-file-system "$root"
}
build one /build/toolcell
build two /srv/elsewhere/a/longer/name
diff "$work/dist-one/SHA256SUMS" "$work/dist-two/SHA256SUMS"
(cd "$work/dist-two" && sha256sum --quiet --check SHA256SUMS)
echo "the same bytes twice:"
cat "$work/dist-one/SHA256SUMS"
