#!/bin/bash
# One way to install toolcell, within a root that .ci/install.sh has made.
#
#   case.sh put|use|remove WAY
#
# INDEX is the address of index.py. /dist has the packages, /case this folder.
set -eu
case=$2
export UV_DEFAULT_INDEX=$INDEX/simple/ UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1
export PIP_INDEX_URL=$INDEX/simple/ PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_BREAK_SYSTEM_PACKAGES=1
export npm_config_registry=$INDEX/ npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false npm_config_yes=true
[ "$case" != npm ] || export npm_config_prefix=$HOME/.npm-global
# The sandbox has the Python of this root: no image is fetched.
export TOOLCELL_IMAGE=host
PATH=$HOME/venv/bin:$HOME/.local/bin:$HOME/.npm-global/bin:$PATH
machine=$(uname -m)
debian=$(dpkg --print-architecture)
wheel=(/dist/*_"$machine".whl)
tarball=(/dist/*-linux-"$debian".tar.gz)
alien='^rpm: .*\(Alien\|know what you are doing\)' # what Debian's rpm says each time
stable=${XDG_DATA_HOME:-$HOME/.local/share}/toolcell/bin/toolcell

# toolcell starts the program as a user of this way would type it.
toolcell() {
	case $case in
	uvx) uvx toolcell "$@" ;;
	npx) npx toolcell "$@" ;;
	*) command toolcell "$@" ;;
	esac
}

put() {
	case $case in
	uvx | npx) ;;
	venv) python3 -m venv "$HOME/venv" && pip install -q toolcell ;;
	wheel) pip install -q "${wheel[0]}" ;;
	pip) pip install -q toolcell ;;
	uv-tool) uv tool install -q toolcell ;;
	npm) npm install -g --silent toolcell ;;
	dpkg) dpkg -i /dist/*_"$debian".deb >/dev/null && profile ;;
	rpm) rpm --install --nodeps /dist/*."$machine".rpm 2> >(grep -v "$alien" >&2) && profile ;;
	tarball)
		mkdir -p "$HOME/.local"
		tar -C "$HOME/.local" --strip-components=1 -xzf "${tarball[0]}"
		;;
	esac
}

# profile checks that AppArmor has one that it can read, where it knows the rule in it.
profile() {
	local file=/etc/apparmor.d/toolcell-package
	if [ -e /etc/apparmor.d/abi/4.0 ]; then
		apparmor_parser --quiet --skip-kernel-load --skip-cache "$file"
		echo "  with a profile"
	elif [ -e "$file" ]; then
		echo "FAILED: this AppArmor cannot read $file" >&2
		return 1
	fi
}

remove() {
	case $case in
	uvx) uv cache clean -q ;;
	npx) rm -rf "$HOME/.npm/_npx" ;;
	venv) rm -r "$HOME/venv" ;;
	wheel | pip) pip uninstall -q -y toolcell ;;
	uv-tool) uv tool uninstall -q toolcell ;;
	npm) npm uninstall -g --silent toolcell ;;
	dpkg) dpkg --purge toolcell >/dev/null ;;
	rpm) rpm --erase toolcell 2> >(grep -v "$alien" >&2) ;;
	tarball)
		(cd "$HOME/.local" && tar -tzf "${tarball[0]}" | cut -d / -f 2- | sort -r | while read -r name; do
			case $name in
			*/) rmdir --ignore-fail-on-non-empty "$name" ;;
			?*) rm "$name" ;;
			esac
		done)
		;;
	esac
}

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# expect compares what a command prints with a pattern of bash.
expect() { # PATTERN COMMAND…
	local pattern=$1 got
	shift
	got=$("$@" 2>/tmp/errors) || fail "$*: exit code $?: $(cat /tmp/errors)"
	# shellcheck disable=SC2053 # a pattern
	[[ $got == $pattern ]] || fail "$* prints: $got; want: $pattern"
	rm -f /tmp/errors
}

use() {
	failed=
	expect "toolcell $VERSION (*, 20*)" toolcell version
	expect 42 toolcell exec --image host -q -c 'print(6 * 7)'
	mkdir -p "$HOME/.cursor"
	local from=$SECONDS
	expect '*' toolcell install cursor
	case $case in
	uvx | npx)
		# The entry does not depend on a cache, which may be emptied at any time.
		remove
		expect "$stable" python3 /case/client.py "$HOME/.cursor/mcp.json"
		;;
	# Neither do these last.
	venv | npm) expect "$stable" python3 /case/client.py "$HOME/.cursor/mcp.json" ;;
	uv-tool) expect "$HOME/.local/*/toolcell" python3 /case/client.py "$HOME/.cursor/mcp.json" ;;
	*) expect "$(type -P toolcell)" python3 /case/client.py "$HOME/.cursor/mcp.json" ;;
	esac
	echo "  entry in $((SECONDS - from)) s"
	expect '*' toolcell uninstall cursor
	rmdir "$HOME/.cursor" || fail "the client's folder is not as it was: $(ls -A "$HOME/.cursor")"
	expect '*' toolcell purge --yes
	[ -z "$failed" ]
}

"$1"
