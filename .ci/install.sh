#!/usr/bin/env bash
# Installs packages in each way that docs/install.md names, on Debian systems made for it,
# as root and as an ordinary user: version, a run in a sandbox, an entry that works for a
# client, the upgrade that the program names, and nothing left after it is uninstalled.
#
#   .ci/install.sh THIS NEXT [RELEASE…] [-- WAY…]
#
# THIS and NEXT are folders with the packages of two versions: .ci/released.sh. Needs root,
# mmdebstrap, PyPI once for uv, and Debian's packages where this machine's apt has them.
set -euo pipefail
cd "$(dirname "$0")/.."
this=$(realpath "$1") next=$(realpath "$2")
shift 2
releases=() ways=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do releases+=("$1") && shift; done
[ $# -lt 2 ] || ways=("${@:2}")
[ ${#releases[@]} -gt 0 ] || releases=(bookworm trixie)
[ ${#ways[@]} -gt 0 ] || ways=(uvx npx venv pip wheel pipx uv-tool npm dpkg rpm tarball)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/toolcell-test/install
[ "$(id -u)" = 0 ] || { echo "toolcell: only root can make the systems to install on" >&2 && exit 1; }

version() { # DIR
	sed -n 's/^  "version": "\(.*\)",$/\1/p' "$1/server.json"
}
versions=("VERSION=$(version "$this")" "NEXT=$(version "$next")")

work=$(mktemp -d)
index=
cleanup() {
	[ -z "$index" ] || kill "$index"
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT

# system makes a root with what the ways need, and what users have, once.
system() { # RELEASE
	local root=$work/new
	mkdir -p "$cache"
	.ci/sources.sh "$1" >"$work/sources"
	mmdebstrap --quiet --mode=root --variant=minbase --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
		--include=ca-certificates,python3,python3-venv,python3-pip,nodejs,npm,pipx,rpm,dnf,sudo,uidmap,apparmor \
		"$1" "$root" "$work/sources"
	rm -rf "$root"/etc/apt/sources.list* "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
	chroot "$root" useradd --create-home --shell /bin/bash dev
	echo 'dev ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/dev"
	# The folders that homes have, whichever program made them first. pip removes some that
	# are empty.
	local home python
	python=$(cd "$root/usr/lib" && echo python3.*)
	for home in "$root/root" "$root/home/dev"; do
		mkdir -p "$home"/{.cache,.config,.local/{bin,share/man,state},".local/lib/$python/site-packages",.npm-global/{bin,lib/node_modules}}
		touch "$home"/{.cache,.config,.local/{bin,share,share/man,state}}/.keep "$home/.local/lib/$python/site-packages/.keep"
	done
	chroot "$root" chown -R dev: /home/dev
	chroot "$root" rpm --initdb
	touch "$root/var/lib/dpkg/status-old" "$root/var/log/dpkg.log"
	cp /etc/ssl/certs/ca-certificates.crt "$root/tmp/ca.crt"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	chroot "$root" python3 -m venv /opt/uv
	chroot "$root" env -i PATH=/usr/bin:/bin /opt/uv/bin/pip install --quiet --disable-pip-version-check --cert /tmp/ca.crt "$UV"
	# pipx brings its own up to date, and does without setuptools from 3.12 on.
	chroot "$root" env -i PATH=/usr/bin:/bin /opt/uv/bin/pip download --quiet --disable-pip-version-check --cert /tmp/ca.crt \
		--no-deps --dest /opt/wheels pip setuptools wheel
	ln -s /opt/uv/bin/uv /opt/uv/bin/uvx "$root/usr/local/bin"
	: >"$root/etc/apt/sources.list"
	mkdir -p "$root/etc/apt/sources.list.d" "$root/etc/dnf/vars"
	echo 1 >"$root/etc/dnf/vars/releasever" # dnf wants one, of whatever system
	rm -rf "$root/tmp/ca.crt" "$root/etc/resolv.conf" "$root"/root/.cache/*
	tar -C "$root" --one-file-system -cf "$cache/$1.tar.part" .
	mv "$cache/$1.tar.part" "$cache/$1.tar"
	echo "$stamp" >"$cache/$1.stamp"
	rm -rf --one-file-system "$root"
}
UV=uv==0.9.5
stamp=$(sed -n '/^system()/,/^UV=/p' "$0" | sha256sum)

# enter runs a command in a root, where it is the init process's child. A chroot would not
# do: the kernel makes no user namespaces in one.
enter() { # ROOT USER COMMAND…
	local root=$1 user=$2
	shift 2
	# shellcheck disable=SC2016 # for the shell inside
	env -i INDEX="$address" "${versions[@]}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		unshare --mount --pid --fork --kill-child --propagation private /bin/sh -ec '
		root=$1 user=$2
		mount --bind "$root" "$root"
		mount --rbind /dev "$root/dev"
		mount --rbind /sys "$root/sys"
		mount -t proc proc "$root/proc"
		mount -t tmpfs tmpfs "$root/run"
		mkdir "$root/run/old" "$root/run/this" "$root/run/next" "$root/run/case"
		mount --bind "$3" "$root/run/this"
		mount --bind "$4" "$root/run/next"
		mount --bind "$5" "$root/run/case"
		shift 5
		cd "$root"
		pivot_root . run/old
		umount -l /run/old
		cd /
		if [ "$user" = root ]; then
			export HOME=/root USER=root
			cd
			exec "$@"
		fi
		export HOME=/home/$user USER=$user
		cd
		exec setpriv --reuid "$user" --regid "$user" --init-groups "$@"
	' sh "$root" "$user" "$this" "$next" "$PWD/.ci/install" "$@"
}

# files lists what is in a root, without what package managers keep for the next time, and
# what Python compiles.
files() { # ROOT
	local kept=(-name __pycache__) path
	for path in '*/.cache/uv' '*/.cache/pip' '*/.local/share/uv' '*/pipx' '*/.npm' \
		./var/{cache/{apt,debconf,dnf},lib/{apt/lists,dnf},log}; do
		kept+=(-o -path "$path")
	done
	(cd "$1" && find . -xdev \( "${kept[@]}" \) -prune -o -printf '%y %m %p\n' | sort)
}

openssl req -x509 -newkey ed25519 -nodes -days 1 -subj /CN=api.github.com -addext subjectAltName=DNS:api.github.com \
	-keyout "$work/key" -out "$work/github.pem" 2>"$work/openssl" || { cat "$work/openssl" >&2 && exit 1; }
cat "$work/github.pem" "$work/key" >"$work/certificate"
exec 3< <(exec python3 .ci/install/index.py "$this" "$next" "$work/published" "$work/certificate")
index=$!
read -r address <&3

failed=()
for release in "${releases[@]}"; do
	[ "$(cat "$cache/$release.stamp" 2>/dev/null)" = "$stamp" ] || { echo "making a $release" && system "$release"; }
	root=$work/$release
	mkdir "$root"
	tar -C "$root" -xf "$cache/$release.tar"
	ln -s run/this run/next run/case "$root"
	cp "$work/github.pem" "$root"
	for user in root dev; do
		for way in "${ways[@]}"; do
			# Packages of the system are root's to install.
			admin=$user
			case $way in dpkg | rpm) admin=root ;; esac
			from=$SECONDS
			echo "$release, $user: $way"
			files "$root" >"$work/before"
			# What was asked of the index, uv keeps for as long as PyPI says.
			rm -rf "$work/published" "$root"/{root,home/dev}/{.cache/{uv,pip},.npm}
			status=0
			enter "$root" $admin bash /case/case.sh put "$way" || status=1
			enter "$root" $user bash /case/case.sh use "$way" || status=1
			touch "$work/published"
			enter "$root" $user bash /case/case.sh upgrade "$way" || status=1
			enter "$root" $admin bash /case/case.sh remove "$way" || status=1
			files "$root" >"$work/after"
			if ! diff "$work/before" "$work/after"; then
				echo "FAILED: something is left" >&2
				status=1
			fi
			[ $status = 0 ] || failed+=("$release, $user: $way")
			echo "  $((SECONDS - from)) s"
		done
	done
	rm -rf --one-file-system "$root"
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "installed, upgraded and removed in ${#ways[@]} ways, as 2 users, on ${releases[*]}"
