#!/bin/sh
# Runs the tests that depend on the Python in an image, on images of the versions
# named, as .ci/images.sh knows them and builds them first. `make test-pythons`
# calls this, with the settings of the build. It takes five minutes a version,
# and ten more to build musl.
#
#   .ci/pythons.sh VERSION...
set -eu
cd "$(dirname "$0")/.."
.ci/images.sh "$TOOLCELL_TEST_IMAGES" "$@"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# interpreter makes $work/python, a program that is the Python of an image, with
# the /tmp and the working directory of the process that starts it.
interpreter() {
	TOOLCELL_STATE_DIR=$work/state bin/toolcell images pull "$1" >/dev/null
	about=$(TOOLCELL_STATE_DIR=$work/state bin/toolcell images inspect "$1")
	root=$(echo "$about" | sed -n 's/^ *"dir": "\(.*\)",$/\1/p')
	python=$(echo "$about" | sed -n 's/^ *"python": "\(.*\)",$/\1/p')
	cat >"$work/python" <<-EOF
		#!/bin/sh
		exec unshare --user --map-root-user --mount sh -c '
			for dir in tmp dev proc; do mount --rbind /\$dir "\$0/\$dir" || exit; done
			[ -d "\$0\$PWD" ] || cd /
			exec unshare --root="\$0" --wd="\$PWD" "\$@"' '$root' '$python' "\$@"
	EOF
	chmod 755 "$work/python"
}

status=0
try() { go test -tags "$TAGS" -count=1 -timeout 30m "$@" || status=1; }
for version in "$@"; do
	echo "On the image python-$version:"
	layout=oci:$TOOLCELL_TEST_IMAGES/python-$version
	interpreter "$layout"
	export TOOLCELL_TEST_RUNNER_PYTHON="$work/python" TOOLCELL_TEST_PYTHONS="$version"
	.ci/venv.sh && .venv/bin/pytest -q || status=1
	try -run '^Test(AnyPython|SandboxedPython|Promises|ModulesAreCompiled|Image|LocalImages)' ./cmd/toolcell/e2e
	# These take the host's own Python elsewhere.
	export TOOLCELL_TEST_INSTEAD="$layout" TOOLCELL_TEST_HOSTS="root self"
	try -run '^Test(Limits|Uncounted|Seccomp|EscapeBattery$|Saved|Timeout|Cancel|Closed|Killed|BadInput|Forged|Exec|Nothing)' ./cmd/toolcell/e2e
	unset TOOLCELL_TEST_INSTEAD TOOLCELL_TEST_HOSTS
done
exit $status
