#!/usr/bin/env bash
# Builds the disk of the test machine: Debian 12 (bookworm) with its cloud kernel,
# systemd, cgroup v2, and the ordinary user dev, who lingers. It has no container
# tools. boot.sh boots it. Needs root, x86-64 and Debian's packages of bookworm in
# this machine's apt settings; takes about 30 seconds and 340 MB.
#
#   .ci/vm/image.sh
#
# leaves $VMDIR/image, and does nothing if that is up to date.
#
#   VMDIR       working directory (default ~/.cache/toolcell-test/vm)
#   VM_SOURCES  a file of one-line apt sources, instead of this machine's own
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
HERE=$(cd "$(dirname "$0")" && pwd)
VMDIR=${VMDIR:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell-test/vm}
SUITE=bookworm

say() { echo "image.sh: $*" >&2; }
die() {
	say "$*"
	exit 1
}

[ "$(id -u)" = 0 ] || die "only root can build it (mmdebstrap and mke2fs need that)"
[ "$(uname -m)" = x86_64 ] || die "the machine is x86-64 only"

# The whole build has one time limit.
if [ -z "${VM_BUILD_INNER:-}" ]; then
	export VM_BUILD_INNER=1
	exec timeout --kill-after=30 1500 "$0"
fi

mkdir -p "$VMDIR"
exec 9>"$VMDIR/.build.lock"
flock 9

# The image is named after everything that goes into it.
STAMP=$({
	cat "$HERE/image.sh" "$HERE"/guest/*
	[ -z "${VM_SOURCES:-}" ] || cat "$VM_SOURCES"
} | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$VMDIR/image/stamp" 2>/dev/null)" != "$STAMP" ] || exit 0

# Install what the build needs.
want=()
for p in qemu-system-x86 qemu-utils mmdebstrap e2fsprogs debian-archive-keyring cpio kmod; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || want+=("$p")
done
say "apt-get update${want[*]:+; installing ${want[*]}}"
apt-get -qq update >/dev/null
[ ${#want[@]} = 0 ] ||
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${want[@]}" >/dev/null

rm -rf --one-file-system "$VMDIR"/build.?????? # left by a build that was killed
BUILD=$(mktemp -d "$VMDIR/build.XXXXXX")
trap 'rm -rf --one-file-system "$BUILD"' EXIT
trap 'exit 143' TERM INT HUP
R=$BUILD/root

# Packages come from where this machine's own apt gets bookworm.
if [ -n "${VM_SOURCES:-}" ]; then
	cp "$VM_SOURCES" "$BUILD/sources"
else
	# $(…) belongs to apt's format language: the shell must not expand it.
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SIGNED_BY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' \
		'Identifier: Packages' 'Origin: Debian' |
		while IFS='|' read -r key uri rel comp; do
			case $rel in
			"$SUITE" | "$SUITE-updates" | "$SUITE-security" | "$SUITE/updates") ;;
			*) continue ;;
			esac
			[ -f "$key" ] || key=/usr/share/keyrings/debian-archive-keyring.gpg
			echo "deb [signed-by=$key] $uri $rel $comp"
		done | sort -u >"$BUILD/sources"
fi
[ -s "$BUILD/sources" ] || die "apt here has no $SUITE sources; name some with VM_SOURCES=FILE"
apt-config dump Acquire | grep -E '^Acquire::(https?|Retries|Check-)' >"$BUILD/apt.conf" || :

# The root file system.
PKGS=(
	linux-image-cloud-amd64 systemd systemd-sysv dbus dbus-user-session libpam-systemd udev
	kmod uidmap python3 procps iproute2 util-linux libcap2-bin less busybox-static
	git curl # of the servers that code reaches
)
say "mmdebstrap $SUITE"
# The small initrd below replaces the one that initramfs-tools would make.
SOURCE_DATE_EPOCH=1700000000 INITRD=No mmdebstrap --quiet --mode=root --variant=minbase --format=directory \
	--aptopt="$BUILD/apt.conf" \
	--aptopt='APT::Install-Recommends "false"' \
	--dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--include="$(IFS=, && echo "${PKGS[*]}")" \
	"$SUITE" "$R" "$BUILD/sources" >"$VMDIR/mmdebstrap.log" 2>&1 </dev/null 9>&- || {
	die "mmdebstrap failed; see $VMDIR/mmdebstrap.log"
}

say "setting the guest up"
# The image does not record where its packages came from.
rm -rf "$R"/etc/apt/sources.list* "$R"/etc/apt/apt.conf.d/99mmdebstrap "$R"/etc/apt/auth.conf* \
	"$R"/var/lib/apt/lists/* "$R"/var/cache/apt/*.bin "$R"/var/log/apt "$R"/var/log/dpkg.log \
	"$R"/var/log/bootstrap.log "$R"/var/log/alternatives.log "$R"/etc/resolv.conf
# shellcheck disable=SC2016 # dpkg-query's own format language
chroot "$R" dpkg-query -W -f '${Package} ${Version}\n' >"$BUILD/packages"

echo debian >"$R/etc/hostname"
printf '127.0.0.1\tlocalhost debian\n::1\tlocalhost ip6-localhost\n' >"$R/etc/hosts"
echo 0f1e2d3c4b5a69788796a5b4c3d2e1f0 >"$R/etc/machine-id"
echo 'LANG=C.UTF-8' >"$R/etc/default/locale"
echo '/dev/vda / ext4 rw,relatime 0 0' >"$R/etc/fstab"
ln -snf /usr/share/zoneinfo/Etc/UTC "$R/etc/localtime"

# The ordinary user. The 65536 subordinate ids that useradd assigns are written
# out, so that they are the same in every build.
chroot "$R" useradd --uid 1000 --user-group --create-home --shell /bin/bash --comment 'Dev,,,' dev
echo 'dev:100000:65536' >"$R/etc/subuid"
echo 'dev:100000:65536' >"$R/etc/subgid"
mkdir -p "$R/var/lib/systemd/linger"
: >"$R/var/lib/systemd/linger/dev" # as loginctl enable-linger dev does

# These units only make the boot longer. logind, the user manager, cgroups and
# udev stay as Debian has them.
systemctl_root() { chroot "$R" systemctl --quiet "$@"; }
for u in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
	fstrim.timer systemd-tmpfiles-clean.timer systemd-timesyncd.service systemd-networkd.service \
	systemd-networkd-wait-online.service systemd-pstore.service systemd-update-utmp.service \
	systemd-update-utmp-runlevel.service systemd-random-seed.service systemd-rfkill.service \
	systemd-journal-flush.service systemd-machine-id-commit.service systemd-binfmt.service \
	systemd-hwdb-update.service systemd-journal-catalog-update.service ldconfig.service \
	systemd-remount-fs.service systemd-fsck-root.service systemd-boot-system-token.service \
	systemd-ask-password-console.path systemd-ask-password-wall.path \
	getty@.service serial-getty@.service getty.target \
	dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount; do
	ln -snf /dev/null "$R/etc/systemd/system/$u"
done
ln -snf /lib/systemd/system/multi-user.target "$R/etc/systemd/system/default.target"
mkdir -p "$R/etc/systemd/journald.conf.d" "$R/etc/systemd/system.conf.d"
printf '[Journal]\nStorage=volatile\n' >"$R/etc/systemd/journald.conf.d/vm.conf"

install -D -m 755 -t "$R/usr/local/lib/vm" "$HERE/guest/vm-runner" "$HERE/guest/vm-cmd"
install -m 644 -t "$R/etc/systemd/system" "$HERE/guest/vm-early.service" "$HERE/guest/vm-runner.service"
install -m 644 "$HERE/guest/vm-login.pam" "$R/etc/pam.d/vm-login"
systemctl_root enable vm-early.service vm-runner.service
mkdir -p "$R/mnt/in" "$R/mnt/out"

# The kernel, and an initrd with the modules that reach the disk.
KVER=$(find "$R/lib/modules" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -V | tail -n 1)
cp "$R/boot/vmlinuz-$KVER" "$BUILD/vmlinuz"
rm -f "$R"/boot/vmlinuz-* "$R"/boot/initrd.img-* "$R"/boot/System.map-*
chroot "$R" depmod "$KVER"
I=$BUILD/initrd.d
mkdir -p "$I/bin" "$I/m" "$I/dev" "$I/proc" "$I/sys" "$I/root"
cp "$R/bin/busybox" "$I/bin/busybox"
install -m 755 "$HERE/guest/init" "$I/init"
for m in virtio_pci virtio_blk virtio_console crc32c_generic ext4; do
	modprobe -d "$R" -S "$KVER" --show-depends "$m"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r ko; do
	cp "$ko" "$I/m/"
	basename "$ko" >>"$I/m/order"
done
[ -e "$I/m/order" ] || : >"$I/m/order"
find "$I" -exec touch -h -d @1700000000 {} +
(cd "$I" && find . | LC_ALL=C sort | cpio --quiet --reproducible -o -H newc -R 0:0) | gzip -9n >"$BUILD/initrd"

# The disk.
say "ext4 image"
truncate -s 6G "$BUILD/root.img"
E2FSPROGS_FAKE_TIME=1700000000 mke2fs -q -F -t ext4 -L vmroot -m 0 -O '^has_journal,^orphan_file' \
	-U 11111111-2222-4333-8444-555555555555 \
	-E hash_seed=66666666-7777-4888-8999-aaaaaaaaaaaa,lazy_itable_init=1,nodiscard \
	-d "$R" "$BUILD/root.img" 2>"$BUILD/mke2fs.err" || { cat "$BUILD/mke2fs.err" >&2; die "mke2fs failed"; }

mkdir "$BUILD/image"
mv "$BUILD"/{vmlinuz,initrd,root.img,packages} "$BUILD/image/"
echo "$KVER" >"$BUILD/image/kernel-version"
echo "$STAMP" >"$BUILD/image/stamp"
# A machine that is running keeps the files that it has open.
rm -rf --one-file-system "$VMDIR/image.old"
[ ! -e "$VMDIR/image" ] || mv "$VMDIR/image" "$VMDIR/image.old"
mv "$BUILD/image" "$VMDIR/image"
rm -rf --one-file-system "$VMDIR/image.old"
say "done in $SECONDS s: $VMDIR/image, kernel $KVER, $(wc -l <"$VMDIR/image/packages") packages, $(du -sh "$VMDIR/image" | cut -f1) on disk"
