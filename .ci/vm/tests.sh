#!/usr/bin/env bash
# In the virtual machine: runs the tests that run.sh has put beside this
# script, as they are to run in one variant. Output goes to stdout, reports to
# /mnt/out.
#
#   tests.sh VARIANT
#
# RUN, if it is not empty, says which tests instead.
set -euo pipefail
cd "$(dirname "$0")"
variant=$1
if [ "$variant" = r ] && [ "$(id -u)" != 0 ]; then
	# run.sh had this program made.
	exec /usr/local/bin/as-root --reuid=0 --regid=0 --clear-groups env HOME=/root RUN="${RUN:-}" bash tests.sh r
fi

export PATH=$PWD:$PATH:/usr/sbin:/sbin
export TOOLCELL_TEST_BINARY=$PWD/toolcell TOOLCELL_TEST_IMAGES=$PWD/images TOOLCELL_TEST_PYTHONS=3.14 TOOLCELL_TEST_SLOW=10
export TOOLCELL_REPORT=/mnt/out/report
mkdir -p "$TOOLCELL_REPORT"

# The users that the suite makes as root have what dev has in d and db.
export TOOLCELL_TEST_HOSTS="root self"

# The tests are told what the machine lacks: otherwise the suite would pass too
# where toolcell does not find what there is.
case $variant in
r | a | s | e) export TOOLCELL_TEST_LACKS=nothing ;;
ab | an) export TOOLCELL_TEST_LACKS=self:IDS ;;
d) export TOOLCELL_TEST_LACKS=self:CGROUP ;;
db) export TOOLCELL_TEST_LACKS="self:IDS self:CGROUP" ;;
c) export TOOLCELL_TEST_CURE="sudo sysctl -w user.max_user_namespaces=15000" ;;
p) export TOOLCELL_TEST_CURE="sudo sysctl -w kernel.unprivileged_userns_clone=1" ;;
*)
	echo "there is no variant $variant" >&2
	exit 2
	;;
esac

# The suite runs as root and as from a terminal, but for what does not depend on
# the machine: images, clients' files, the words of commands and results, what
# crosses the control socket, the memory of toolcell. Elsewhere it is what the kind
# of host changes: limits, the ways out, what doctor says. The sandboxes of an and
# db are those of ab and d: there it is how they are found to be needed. Without a
# /proc a machine is as any other, so one variant is enough.
same='Image|Pull|FirstRun|Interrupted|Local|Registry|Moved|Modules|AnyPython|MinimalPython'
same+='|Install|Move|RealClients|WhatRealClients|Release|Login|Policy|Servers|Tools|Trust|SecretIs|ServeFollows'
same+='|Commands|Completion|Document|PythonDocument|ShellDocument|Walk|Version|Binary|Colour|JSON|Prompt|Tokens|Estimated|Pictures|Figures|Tables'
same+='|HostileCode|Downloads|ManyCalls|WaitingCalls|BadInput|ForgedFrames|StalledClient|LinesThatAre|SavedTools|KilledUpstream|TwoServers'
same+='|TimeoutSays|FailedRunLists|SandboxedPython|SlowPictures|LongOutput|OnlyColors|OutputModes|SessionsGive|FilesAreRefused'
same+='|GuideWith|MakeSays|MakeUninstall|FaultsOfTheBinary|SandboxedHints' # these build or read what is in the source only
packages=(e2e oci) run=. skip="^TestEscapeBatteryOnAnImage\$|^Test($same)"
case $variant in
a) ;;
r) skip="$skip|^Test(Forbidden|Covered)|/no-proc" ;; # Forbidden and Covered are of ordinary users
c | p) run='^TestForbidden' ;;
an | db) run='^Test(Doctor|Isolation|Uncounted|Seccomp)' skip="$skip|/no-proc|//no-proc" ;;
d) run='^Test(Limits|EscapeBattery|Neighbor|SignalsAre|Doctor$|Isolation|Nothing|Pid1|Landlock)' skip="$skip|HasTeeth|/no-proc|//no-proc" ;;
*) run='^Test(Limits|EscapeBattery|Neighbor|SignalsAre|Doctor$|Isolation|Pid1|Landlock)' skip="$skip|HasTeeth|/no-proc|//no-proc" ;;
esac
run=${RUN:-$run}
case $variant in
r | a) packages+=(container fork host limits pid1) ;;
s | e | an | db | c | p) packages=(e2e) ;; # as a, a, ab and d
esac

# shellcheck disable=SC1091 # a file of the machine
echo "system $(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r), $(systemctl --version | sed -n '1s/ (.*//p'), $(stat -fc %T /sys/fs/cgroup), $(nproc) processors"
echo "cgroup $(cut -d : -f 3 /proc/self/cgroup)"
status=0
for package in "${packages[@]}"; do
	echo "package $package"
	(cd "$package" && ./tests -test.v -test.parallel 1 -test.timeout 115m -test.run "$run" -test.skip "$skip" 2>&1) || status=1
done
exit $status
