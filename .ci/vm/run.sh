#!/usr/bin/env bash
# Runs the end-to-end tests in virtual machines: Debian with systemd and cgroup
# v2, in every way in which a user may come to start toolcell there. Two machines
# run at a time. What came out of each is kept in docs/test-vm. `make test-vm` calls
# this, with the settings of the build.
#
#   VARIANTS        these only, such as "a s"
#   RUN             tests with these names only, such as '^TestLimits'; nothing is kept
#   TOOLCELL_REPORT  a folder for what the tests report and print, as VARIANT/FILE
#
# Variants are those of boot.sh, which explains them, and r: as root.
set -euo pipefail
shopt -s inherit_errexit
set -m # each machine is a process group, which can be ended as one
cd "$(dirname "$0")/../.."
variants=${VARIANTS:-r a d s e ab an db c p} # the long ones first
limit=7200                                   # seconds for one machine
at_once=2

# Why a test may skip in there: what the machine does not have, and why.
known='needs (Node.js and npm|PyPI|the packages of .ci/pypi.sh|HTTP clients from PyPI|htpasswd|the go command|the source|numpy|matplotlib|pandas|mandoc|umoci|root|the memory controller of cgroup v1)|this kernel has no Landlock of version 6|only root can'

work=$(mktemp -d)
cleanup() {
	trap '' INT TERM HUP # or a second one would leave machines behind
	local group
	for group in $(jobs -pr); do kill -- "-$group" 2>/dev/null || true; done
	wait
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# pack gathers what goes in: all that the tests need, for there is no Go, no
# registry and no network.
pack() {
	mkdir -p "$work/in/images"
	cp bin/toolcell .ci/vm/tests.sh "$(command -v docker-registry)" "$work/in"
	cp -r "${TOOLCELL_TEST_IMAGES:?}/python-3.14" "$work/in/images"
	local folder to
	for folder in cmd/toolcell/e2e oci oci/{container,fork,host,limits,pid1}; do
		to=$work/in/${folder##*/}
		mkdir "$to"
		go test -c -tags "${TAGS:?}" -ldflags '-s -w -extldflags -static' -o "$to/tests" "./$folder"
		[ ! -d "$folder/testdata" ] || cp -r "$folder/testdata" "$to"
		[ ! -e "$folder/fork.py" ] || cp "$folder/fork.py" "$to"
	done
	chmod -R a+rX "$work/in"
}

# boot runs one variant and leaves its output, its exit code and its reports.
boot() {
	local variant=$1 letters=$1
	if [ "$variant" = r ]; then
		# boot.sh runs commands as an ordinary user. The kernel's command line
		# tells systemd to make a way to root on top of the usual boot.
		letters=d
		export VM_APPEND='systemd.run="/usr/bin/install -m 4755 /usr/bin/setpriv /usr/local/bin/as-root" systemd.run_success_action=none systemd.wants=kernel-command-line.service systemd.unit=multi-user.target'
	fi
	local status=0
	.ci/vm/boot.sh -v "$letters" -t "$limit" -o "$work/$variant.out" "$work/in" "RUN='${RUN:-}' bash /mnt/in/tests.sh $variant" \
		>"$work/$variant.log" 2>"$work/$variant.err" || status=$?
	echo "$status" >"$work/$variant.status"
	echo "toolcell: variant $variant ended with $status; $(tail -n 1 "$work/$variant.err")"
	[ -n "${RUN:-}" ] || record "$variant" # now, since others may take hours
}

# count counts the tests, with their parts, that came out so.
count() { grep -c "^ *--- $2: " "$work/$1.log" || true; }

# seconds gives how long the boot and the command of a variant took.
seconds() { sed -n 's/^boot.sh: .* boot \([0-9.]*\) s, command \([0-9.]*\) s.*/\1 \2/p' "$work/$1.err"; }

# judge prints Go's summary of a variant, and all there is to know of what
# failed, or was skipped without need. It fails if anything was.
judge() {
	local v=$1 verdict=0 reasons
	echo "variant $v: $(count "$v" PASS) passed, $(count "$v" FAIL) failed, $(count "$v" SKIP) skipped"
	grep -E '^(package |PASS|FAIL|ok )|^ *--- (FAIL|SKIP)' "$work/$v.log" || true
	if [ "$(<"$work/$v.status")" != 0 ] || [ "$(count "$v" PASS)" = 0 ]; then
		grep -vE '^ *(=== |--- PASS)|level=INFO' "$work/$v.log" | cut -c 1-1000 | tail -n 300
		tail -n 50 "$work/$v.err"
		verdict=1
	fi
	reasons=$(grep -cE "\.go:[0-9]+: ($known)" "$work/$v.log") || true
	if [ "$(count "$v" SKIP)" != "$reasons" ]; then
		echo "toolcell: of these skips only $reasons have a reason that .ci/vm/run.sh knows"
		verdict=1
	fi
	return $verdict
}

# record keeps what came out of a variant: what was tested on what, and how long each test
# took.
record() {
	local v=$1 boot tests
	read -r boot tests < <(seconds "$v"; echo)
	mkdir -p docs/test-vm
	{
		echo "make test-vm on $(date -u +%F), commit $commit, variant $v"
		sed -n 's/^system //p; s/^cgroup /started in /p' "$work/$v.log"
		echo "boot ${boot:-?} s, tests ${tests:-?} s: $(count "$v" PASS) passed, $(count "$v" FAIL) failed, $(count "$v" SKIP) skipped"
		echo
		awk '
			$1 == "package" { package = $2 }
			/^--- (PASS|FAIL|SKIP): / { printf "%-70s %7s\n", package "." $3, $2 == "PASS:" ? sprintf("%.1f", substr($4, 2)) : tolower(substr($2, 1, 4)) }
		' "$work/$v.log"
		echo
		echo "skipped:"
		grep -oE "\.go:[0-9]+: ($known)" "$work/$v.log" | cut -d ' ' -f 2- | sort | uniq -c || true
	} >"docs/test-vm/$v.log"
}

commit=$(git describe --always --dirty --exclude '*')
pack
.ci/vm/image.sh
for v in $variants; do
	[ "$(jobs -pr | wc -l)" -lt "$at_once" ] || wait -n
	boot "$v" &
done
wait

failed=
for v in $variants; do
	judge "$v" || failed+=" $v"
	if [ -n "${TOOLCELL_REPORT:-}" ]; then
		mkdir -p "$TOOLCELL_REPORT/$v" "$work/$v.out/report"
		cp -r "$work/$v.out/report/." "$TOOLCELL_REPORT/$v"
		cp "$work/$v.log" "$TOOLCELL_REPORT/$v/test.log"
	fi
done
if [ -n "$failed" ]; then
	echo "toolcell: failed in:$failed" >&2
	exit 1
fi
