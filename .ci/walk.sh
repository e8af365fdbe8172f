#!/usr/bin/env bash
# Records docs/walk.txt: a terminal session that installs and uses toolcell. Real
# commands are typed into a real terminal, that of tmux, and what it shows is kept
# as text.
#
#   .ci/walk.sh IMAGES NPM FILE
#
# IMAGES has the OCI layout of Python 3.14 that a registry on this host serves, NPM
# the MCP Inspector. bin has toolcell and the two servers of examples.
set -euo pipefail
cd "$(dirname "$0")/.."
images=$1 npm=$2 file=$3

# Where the terminal is: a home of its own, and a name that no path here has.
work=$(mktemp -d)
tmux=(tmux -L "toolcell-walk-$$" -f /dev/null)
registry=
cleanup() {
	"${tmux[@]}" kill-server 2>/dev/null || true
	if [ -n "$registry" ]; then kill "$registry" 2>/dev/null || true; fi
	rm -rf "$work" || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

home=$work/home
mkdir -p "$home/MCPs" "$home/.cursor" "$home/.local/bin"
cp bin/calendar bin/tasks "$home/.local/bin"
cp examples/data/week.ics examples/data/todo.txt "$home"
ln -s "$npm/node_modules/.bin/mcp-inspector" "$home/.local/bin/mcp-inspector"
cat >"$home/MCPs/planning.json" <<-END
	{"mcpServers": {"calendar": {"command": "$home/.local/bin/calendar", "args": ["$home/week.ics"]}}}
END
cat >"$home/.cursor/mcp.json" <<-END
	{
	  // my own servers
	  "mcpServers": {
	    "tasks": {"command": "$home/.local/bin/tasks", "args": ["$home/todo.txt"]}
	  }
	}
END

# free_port prints an unused port of the loopback interface.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
addr=127.0.0.1:$(free_port)
cat >"$work/registry.yml" <<-END
	version: 0.1
	log: {level: error}
	storage: {filesystem: {rootdirectory: $work/registry}}
	http: {addr: "$addr"}
END
docker-registry serve "$work/registry.yml" >"$work/registry.log" 2>&1 &
registry=$!
for _ in $(seq 100); do
	if (exec 3<>"/dev/tcp/${addr%:*}/${addr#*:}") 2>/dev/null; then break; fi
	sleep 0.1
done
skopeo copy --quiet --dest-tls-verify=false "oci:$images/python-3.14" "docker://$addr/library/python:3.14-slim"

# The shell says after each command that it is ready for the next. It forgets
# where the image came from when it is there, so that no command speaks of it.
cat >"$work/bashrc" <<-END
	PS1='$ '
	PROMPT_COMMAND='! ls ~/.cache/toolcell/images/refs/* >/dev/null 2>&1 || unset TOOLCELL_REGISTRY_MIRRORS; ${tmux[*]} wait-for -S ready'
END
env -i HOME="$home" PATH="$home/.local/bin:$PATH" LANG=C.UTF-8 TERM=screen-256color GOTOOLCHAIN=auto \
	TOOLCELL_REGISTRY_MIRRORS="docker.io=http://$addr" \
	"${tmux[@]}" new-session -d -x 118 -y 40 "bash --noprofile --rcfile $work/bashrc -i"
"${tmux[@]}" set-option -g history-limit 5000

ready() { timeout 180 "${tmux[@]}" wait-for ready; }
keys() { "${tmux[@]}" send-keys -l -- "$1"; "${tmux[@]}" send-keys Enter; }

# typed types a command and waits until the shell has the next prompt.
typed() {
	keys "$1"
	ready
}

# typed_inside types a line to a program, and waits until it shows the prompt again
# below it.
typed_inside() {
	local before
	before=$(prompts)
	keys "$1"
	until_more_prompts "$before"
}
prompts() { "${tmux[@]}" capture-pane -p -J -S - | grep -c '^>>>' || true; }
until_more_prompts() {
	for _ in $(seq 600); do
		[ "$(prompts)" -gt "$1" ] && return
		sleep 0.1
	done
	echo "toolcell: the prompt did not come back" >&2
	"${tmux[@]}" capture-pane -p >&2
	exit 1
}

ready
typed clear
"${tmux[@]}" clear-history
typed '# Install it from a clone, and ask whether this machine can run sandboxes.'
typed 'make install PREFIX=~/.local'
typed 'cd'
typed 'toolcell doctor'
typed '# The image comes from a registry, once. Then run something.'
typed 'toolcell images pull python:3.14-slim'
typed "toolcell exec -c 'import sys; print(sys.version.split()[0])'"
typed "toolcell exec -c 'open(\"/workspace/out/answer.txt\", \"w\").write(\"42\")'"
typed "toolcell exec --timeout 2 -c 'while True: pass'; echo \"exit \$?\""
typed '# A prompt: one sandbox, whose variables stay.'
keys 'toolcell exec -i'
until_more_prompts 0
typed_inside 'squares = [n * n for n in range(8)]'
typed_inside 'sum(squares)'
typed_inside 'sqares'
typed 'exit()'
typed '# The servers of my MCP clients, and a search by what I want.'
typed 'toolcell servers list'
typed 'toolcell servers search "when do I have time"'
typed '# Into a client, with its own servers moved behind it.'
typed 'toolcell install cursor --move-servers --yes'
typed 'cat ~/.cursor/mcp.json'
typed '# And what a client gets: the MCP Inspector calls the tool.'
typed "mcp-inspector --cli toolcell serve --method tools/call --tool-name run_python --tool-arg 'servers=[\"tasks\"]' 'code=[t.title for t in (await mcp_tasks.list_tasks(open_only=True)).tasks][:3]' 2>/dev/null"

# The recording must not contain this machine's name or its paths: the home
# becomes ~, and of the kernel's version the numbers stay.
"${tmux[@]}" capture-pane -p -J -S - |
	sed -E -e "s|$home|~|g" -e "s|$PWD|~/toolcell|g" -e 's/(Linux [0-9]+\.[0-9]+)[^ ]*/\1/' -e 's/[[:space:]]+$//' |
	sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' -e '/^\$$/d' >"$work/walk.txt"
for secret in "$(hostname)" "$work" "$HOME/" "$(date +%Y-%m-%d)" "$(date -u +%Y-%m-%d)" "$addr"; do
	if grep -nF -- "$secret" "$work/walk.txt"; then
		echo "toolcell: the recording has $secret in it" >&2
		exit 1
	fi
done
cp "$work/walk.txt" "$file"
