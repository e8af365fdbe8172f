#!/usr/bin/env bash
# Boots the machine that image.sh builds, runs one command in it as the user dev,
# prints its output as it comes, and exits with its exit code. The machine has no
# network, and its disk starts from the same state each time.
#
#   .ci/vm/boot.sh -v VARIANT -t SECONDS -o OUT DIR COMMAND
#
# DIR is copied in, read-only, as /mnt/in. COMMAND is a line for bash, which runs in
# /home/dev with /dev/null as its input. OUT gets what the command left in /mnt/out.
# After SECONDS, boot included, the machine is killed. VARIANT is letters: one for
# how the command is started,
#
#   a  by the user manager of dev, as from a desktop's terminal
#   s  in the scope of a login session, as over ssh; the user manager runs
#   d  by a system service: no session, no user manager, nothing delegated
#   e  as d, but the user manager runs, as under cron or sudo -u dev
#
# and any of these for what is missing (without one of the above, it is a):
#
#   b  subordinate ids: /etc/subuid and /etc/subgid are empty
#   n  the programs newuidmap and newgidmap
#   c  user namespaces: user.max_user_namespaces=0 (ENOSPC)
#   p  user namespaces: kernel.unprivileged_userns_clone=0 (EPERM)
#
# The exit code is the command's, 124 if time ran out, 125 if the machine failed (the
# end of its console is then on stderr), 2 for wrong usage.
#
#   VMDIR      where image.sh has left the image
#   VM_ACCEL   tcg, kvm, or auto, which takes kvm if the processor has it (default)
#   VM_APPEND  more arguments for the kernel
set -euo pipefail
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin
HERE=$(cd "$(dirname "$0")" && pwd)
VMDIR=${VMDIR:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell-test/vm}
IMG=$VMDIR/image

say() { echo "boot.sh: $*" >&2; }
usage() {
	echo "usage: $0 -v VARIANT -t SECONDS -o OUT DIR COMMAND" >&2
	exit 2
}

VARIANT='' LIMIT='' OUTDIR=''
while getopts v:t:o: option; do
	case $option in
	v) VARIANT=$OPTARG ;;
	t) LIMIT=$OPTARG ;;
	o) OUTDIR=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[[ $# = 2 && -d $1 && -n $OUTDIR && $VARIANT =~ ^[asdebncp]+$ && $LIMIT =~ ^[1-9][0-9]*$ ]] || usage
DIR=$1 CMD=$2

for f in vmlinuz initrd root.img; do
	[ -e "$IMG/$f" ] || {
		say "there is no $IMG/$f: run $HERE/image.sh first"
		exit 125
	}
done
if ! command -v qemu-system-x86_64 >/dev/null || ! command -v mke2fs >/dev/null; then
	[ "$(id -u)" = 0 ] || {
		say "qemu-system-x86 and e2fsprogs are missing"
		exit 125
	}
	apt-get -qq update >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends \
		qemu-system-x86 e2fsprogs >/dev/null
fi

mkdir -p "$VMDIR/runs"
W=$(mktemp -d "$VMDIR/runs/XXXXXX")
QPID='' TPID=''
# shellcheck disable=SC2317 # a trap calls it
cleanup() {
	[ -z "$TPID" ] || kill "$TPID" 2>/dev/null || :
	# timeout passes the signal on, and kills qemu 5 s later if it still runs.
	[ -z "$QPID" ] || { kill "$QPID" 2>/dev/null && wait "$QPID" 2>/dev/null; } || :
	rm -rf --one-file-system "$W"
}
trap cleanup EXIT
trap 'exit 143' TERM
trap 'exit 130' INT HUP

# The disk that goes in: DIR as /in, the command and the variant in /ctl.
mkdir -m 755 "$W/d" "$W/d/in" "$W/d/ctl"
cp -a --reflink=auto "$DIR/." "$W/d/in/"
if [ "$(id -u)" = 0 ]; then
	chown -hR 1000:1000 "$W/d/in"
elif [ "$(id -u)" != 1000 ]; then
	chmod -R a+rX "$W/d/in"
fi
printf '%s\n' "$CMD" >"$W/d/ctl/cmd"
printf '%s\n' "$VARIANT" >"$W/d/ctl/variant"
kib=$(du -sk --apparent-size "$W/d" | cut -f1)
ino=$(find "$W/d" | wc -l)
truncate -s "$((kib * 5 / 4 + ino * 5 + 16384))K" "$W/in.img"
mke2fs -q -F -t ext4 -b 4096 -m 0 -O '^has_journal,^resize_inode' -N "$((ino + 256))" -d "$W/d" "$W/in.img" ||
	{
		say "mke2fs failed"
		exit 125
	}
rm -rf "$W/d"
truncate -s 2G "$W/out.img"

# Boot.
ACCEL=${VM_ACCEL:-auto}
if [ "$ACCEL" = auto ]; then
	ACCEL=tcg
	if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then ACCEL=kvm; fi
fi
case $ACCEL in
	tcg) ACCEL=tcg,thread=multi CPU=max,la57=off ;;
	*) CPU=host ;;
esac
touch "$W/stdout" "$W/stderr" "$W/status" "$W/console"
now() { date +%s%N; }
T0=$(now)
TMPDIR=$W timeout --kill-after=5 "$LIMIT" qemu-system-x86_64 \
	-nodefaults -no-user-config -no-reboot -display none -monitor none -nic none \
	-machine pc,usb=off,vmport=off -accel "$ACCEL" -cpu "$CPU" -smp 2 -m 2048 \
	-kernel "$IMG/vmlinuz" -initrd "$IMG/initrd" \
	-append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off systemd.show_status=error ${VM_APPEND:-}" \
	-drive "if=none,id=root,file=$IMG/root.img,format=raw,snapshot=on" -device virtio-blk-pci,drive=root,serial=vmroot \
	-drive "if=none,id=in,file=$W/in.img,format=raw,readonly=on" -device virtio-blk-pci,drive=in,serial=vmin \
	-drive "if=none,id=out,file=$W/out.img,format=raw,cache=unsafe,discard=unmap" -device virtio-blk-pci,drive=out,serial=vmout \
	-device virtio-rng-pci -device virtio-serial-pci \
	-chardev "file,id=c1,path=$W/stdout" -device virtserialport,chardev=c1,name=vm.stdout \
	-chardev "file,id=c2,path=$W/stderr" -device virtserialport,chardev=c2,name=vm.stderr \
	-chardev "file,id=c3,path=$W/status" -device virtserialport,chardev=c3,name=vm.status \
	-serial "file:$W/console" </dev/null >"$W/qemu.log" 2>&1 &
QPID=$!
# tail prints what comes, and ends after qemu, when it has read everything.
tail -q -c +1 -f -s 0.2 --pid=$QPID "$W/stdout" &
TPID=$!
tail -q -c +1 -f -s 0.2 --pid=$QPID "$W/stderr" >&2 &
EPID=$!

TREADY=''
while kill -0 $QPID 2>/dev/null; do
	if [ -z "$TREADY" ] && grep -q '^READY' "$W/status"; then TREADY=$(now); fi
	if grep -q '^EXIT' "$W/status"; then break; fi
	sleep 0.1
done
TEXIT=$(now)
QRC=0
wait $QPID || QRC=$?
QPID=''
wait $TPID $EPID || :
TPID=''

# Results.
RC=$(awk '$1 == "EXIT" { print $2 }' "$W/status")
if [ -z "$RC" ]; then
	if [ $QRC = 124 ] || [ $QRC = 137 ]; then
		say "time ran out after $LIMIT s ($([ -n "$TREADY" ] && echo "while the command ran" || echo "before the machine was up"))"
		RC=124
	else
		say "the machine failed (qemu $QRC): $(tr '\n' ' ' <"$W/status")"
		RC=125
	fi
	if [ -z "$TREADY" ] || [ $RC = 125 ]; then
		{
			cat "$W/qemu.log"
			tail -n 40 "$W/console"
		} | sed 's/^/boot.sh: | /' >&2
	fi
fi
if grep -q '^OUT ' "$W/status"; then
	grep -q '^OUT ok' "$W/status" || {
		say "/mnt/out did not come out whole"
		RC=125
	}
	mkdir -p "$OUTDIR"
	tar -C "$OUTDIR" --no-same-owner -xf "$W/out.img" || {
		say "cannot unpack what came out"
		RC=125
	}
fi
# since prints the seconds between two of our times, with a tenth.
since() {
	local tenths=$((($2 - $1) / 100000000))
	printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}
boot=never command=-
if [ -n "$TREADY" ]; then
	boot=$(since "$T0" "$TREADY") command=$(since "$TREADY" "$TEXIT")
fi
say "variant $VARIANT, $ACCEL; boot $boot, command $command, all $(since "$T0" "$(now)"); exit $RC"
exit "$RC"
