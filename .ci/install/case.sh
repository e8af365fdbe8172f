#!/bin/bash
# One way to install toolcell, within a root that .ci/install.sh has made.
#
#   case.sh put|use|upgrade|remove WAY
#
# INDEX is the address of index.py. /this has the packages of VERSION, /next those of NEXT,
# /case this folder.
set -eu
case=$2
# shellcheck source=/dev/null
. /case/expect.sh
export UV_DEFAULT_INDEX=$INDEX/simple/ UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1
export PIP_INDEX_URL=$INDEX/simple/ PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export PIP_FIND_LINKS=/opt/wheels # what pipx wants for itself
export npm_config_registry=$INDEX/ npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false npm_config_yes=true
[ "$case" != npm ] || export npm_config_prefix=$HOME/.npm-global
# The sandbox has the Python of this root: no image is fetched.
export TOOLCELL_IMAGE=host
PATH=$HOME/venv/bin:$HOME/.local/bin:$HOME/.npm-global/bin:$PATH
machine=$(uname -m)
debian=$(dpkg --print-architecture)
wheel=(/this/*_"$machine".whl)
tarball=(/this/*-linux-"$debian".tar.gz)
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
	wheel) pip install -q --break-system-packages "${wheel[0]}" ;;
	pip) pip install -q --break-system-packages toolcell ;;
	pipx) pipx install toolcell >/dev/null 2>&1 ;;
	uv-tool) uv tool install -q toolcell ;;
	npm) npm install -g --silent toolcell ;;
	dpkg) dpkg -i /this/*_"$debian".deb >/dev/null && profile ;;
	rpm) rpm --install --nodeps /this/*."$machine".rpm 2> >(grep -v "$alien" >&2) && profile ;;
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
		apparmor_parser --quiet --skip-kernel-load --skip-cache "$file" 2>/dev/null || fail "AppArmor cannot read $file"
	elif [ -e "$file" ]; then
		fail "this AppArmor is too old for $file"
	fi
}

remove() {
	case $case in
	uvx) uv cache clean -q ;;
	npx) rm -rf "$HOME/.npm/_npx" ;;
	venv) rm -r "$HOME/venv" ;;
	wheel | pip) pip uninstall -q -y --break-system-packages toolcell ;;
	pipx) pipx uninstall toolcell >/dev/null ;;
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

# check compares what the newest version is said to be with a pattern. GitHub's API is index.py,
# which leads there as a proxy.
check() { # PATTERN
	case $case in
	dpkg | rpm | tarball) local -x SSL_CERT_FILE=/github.pem HTTPS_PROXY=$INDEX ;;
	esac
	expect "$1" toolcell version --check
}

# entry checks which program the client starts, and the version that it says it is.
entry() { # VERSION
	local program
	case $case in
	# The entry does not depend on a cache, or on what lasts no longer.
	uvx | npx | venv | npm) program=$stable ;;
	uv-tool | pipx) program="$HOME/.local/*/toolcell" ;;
	*) program=$(type -P toolcell) ;;
	esac
	expect "$program $1" python3 /case/client.py "$HOME/.cursor/mcp.json"
}

use() {
	expect "toolcell $VERSION (*, 20*)" toolcell version
	expect 42 toolcell exec --image host -q -c 'print(6 * 7)'
	check '* has no newer version'
	mkdir -p "$HOME/.cursor"
	local from=$SECONDS
	expect '*' toolcell install cursor
	entry "$VERSION"
	echo "  entry in $((SECONDS - from)) s"
}

# upgrade types what the program says, where files were downloaded.
upgrade() {
	check "* has $NEXT; *"
	local command
	command=$(typed)
	case $case in
	dpkg) download .deb ;;
	rpm) download .rpm ;;
	tarball) download .tar.gz ;;
	esac
	expect '*' bash -ec "$command" <<<y # apt and dnf ask
	case $case in dpkg | rpm) profile ;; esac
	expect "toolcell $NEXT (*, 20*)" toolcell version
	check '* has no newer version'
	entry "$NEXT"
	older
	case $case in uvx | npx) remove ;; esac
	entry "$NEXT"
	expect '*' toolcell uninstall cursor
	rmdir "$HOME/.cursor" || fail "the client's folder is not as it was: $(ls -A "$HOME/.cursor")"
	expect '*' toolcell purge --yes
	rm -rf "$HOME/Downloads"
}

# download puts the files of both versions into a folder, as users have them, and goes there.
download() { # SUFFIX
	mkdir "$HOME/Downloads"
	cp /this/*"$1" /next/*"$1" "$HOME/Downloads"
	cd "$HOME/Downloads"
}

# older has the older version, which is still in a cache or asked for, add itself to a client. It
# must not take the place of the newer one without a word.
older() {
	local said
	if [ "$case" = npx ]; then
		said=$(npx "toolcell@$VERSION" install cursor 2>&1) || fail "the older version: $said"
	else
		said=$(uvx "toolcell==$VERSION" install cursor 2>&1) || fail "the older version: $said"
	fi
	[[ $said == *"$NEXT"* ]] || fail "the older version says: $said"
}

"$1"
[ -z "$failed" ]
