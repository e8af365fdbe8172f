package commandline_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/mcpproxy/commandline"
)

// words splits a line at spaces; '…' is one word.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

func parse(line string) (commandline.Line, error) {
	w := words(line)
	return commandline.Parse(w[0], w[1:])
}

// describe writes what a command line means on one line: KIND [PACKAGES] PROGRAM [ARGUMENTS], Python and file.
func describe(l commandline.Line) string {
	packages := []string{}
	for _, p := range l.NPM {
		packages = append(packages, p.String())
	}
	for _, p := range l.PyPI {
		packages = append(packages, p.String())
	}
	s := string(l.Kind)
	if len(packages) > 0 {
		s += " [" + strings.Join(packages, " ") + "]"
	}
	if l.Program != "" {
		s += " " + l.Program
	}
	if len(l.Args) > 0 {
		s += fmt.Sprint(" ", l.Args)
	}
	if l.Python.String() != "" {
		s += " python" + l.Python.String()
	}
	if l.File != "" {
		s += " file=" + l.File
	}
	return s
}

// TestCommandsOfRealServers are those of their READMEs.
func TestCommandsOfRealServers(t *testing.T) {
	for line, want := range map[string]string{
		// npx
		"npx -y @modelcontextprotocol/server-filesystem /home/u/Desktop /home/u/Downloads": "npm [@modelcontextprotocol/server-filesystem] [/home/u/Desktop /home/u/Downloads]",
		"npx -y @modelcontextprotocol/server-memory":                                       "npm [@modelcontextprotocol/server-memory]",
		"npx -y @modelcontextprotocol/server-everything stdio":                             "npm [@modelcontextprotocol/server-everything] [stdio]",
		"npx -y @modelcontextprotocol/server-sequential-thinking":                          "npm [@modelcontextprotocol/server-sequential-thinking]",
		"npx @playwright/mcp@latest --headless --isolated":                                 "npm [@playwright/mcp@latest] [--headless --isolated]",
		"npx -y chrome-devtools-mcp@latest --channel=canary --headless=true":               "npm [chrome-devtools-mcp@latest] [--channel=canary --headless=true]",
		"npx -y @upstash/context7-mcp --api-key KEY":                                       "npm [@upstash/context7-mcp] [--api-key KEY]",
		"npx -y @notionhq/notion-mcp-server":                                               "npm [@notionhq/notion-mcp-server]",
		"npx @sentry/mcp-server@latest --access-token=T --host=sentry.example.com":         "npm [@sentry/mcp-server@latest] [--access-token=T --host=sentry.example.com]",
		"npx -y kubernetes-mcp-server@latest":                                              "npm [kubernetes-mcp-server@latest]",
		"npx mcp-server-kubernetes":                                                        "npm [mcp-server-kubernetes]",
		"npx -y firecrawl-mcp":                                                             "npm [firecrawl-mcp]",
		"npx -y tavily-mcp@0.2.1":                                                          "npm [tavily-mcp@0.2.1]",
		"npx -y mongodb-mcp-server@latest --readOnly":                                      "npm [mongodb-mcp-server@latest] [--readOnly]",
		"npx -y @azure/mcp@latest server start":                                            "npm [@azure/mcp@latest] [server start]",
		"npx -y @supabase/mcp-server-supabase@latest --read-only --project-ref=x":          "npm [@supabase/mcp-server-supabase@latest] [--read-only --project-ref=x]",
		"npx -y @stripe/mcp --tools=all":                                                   "npm [@stripe/mcp] [--tools=all]",
		"npx -y mcp-remote https://mcp.linear.app/sse":                                     "npm [mcp-remote] [https://mcp.linear.app/sse]",
		"npx -y figma-developer-mcp --figma-api-key=K --stdio":                             "npm [figma-developer-mcp] [--figma-api-key=K --stdio]",
		"npx -y -p @grafana/x@^1.2 -p typescript grafana-mcp -y":                           "npm [@grafana/x@^1.2 typescript] grafana-mcp [-y]",
		"npx -y --package=@brave/brave-search-mcp-server brave-search-mcp-server":          "npm [@brave/brave-search-mcp-server] brave-search-mcp-server",
		"npx --yes -- @apify/actors-mcp-server --actors a":                                 "npm [@apify/actors-mcp-server] [--actors a]",
		"npx -y 'some-mcp@>=1.0 <2' -p 3000":                                               "npm [some-mcp@>=1.0 <2] [-p 3000]",
		"/usr/bin/npx --quiet --yes exa-mcp-server":                                        "npm [exa-mcp-server]",
		"/home/u/.nvm/versions/node/v22.1.0/bin/npx -y xcodebuildmcp":                      "npm [xcodebuildmcp]",
		"npm exec -- @e2b/mcp-server --flag":                                               "npm [@e2b/mcp-server] [--flag]",
		"npm exec --yes --package=@angular/cli -- ng mcp --read-only":                      "npm [@angular/cli] ng [mcp --read-only]",
		"npm x --yes @browsermcp/mcp@latest":                                               "npm [@browsermcp/mcp@latest]",
		"npm exec @a/b --yes -- --verbose":                                                 "npm [@a/b] [--verbose]",
		"bunx -y @modelcontextprotocol/server-github":                                      "npm [@modelcontextprotocol/server-github]",
		"bunx -p @angular/cli ng mcp":                                                      "npm [@angular/cli] ng [mcp]",
		"bun x figma-mcp@1 --stdio":                                                        "npm [figma-mcp@1] [--stdio]",

		// uvx
		"uvx mcp-server-git --repository path/to/git/repo":                                 "pypi [mcp-server-git] mcp-server-git [--repository path/to/git/repo]",
		"uvx mcp-server-time --local-timezone=Europe/Berlin":                               "pypi [mcp-server-time] mcp-server-time [--local-timezone=Europe/Berlin]",
		"uvx mcp-server-fetch":                                                             "pypi [mcp-server-fetch] mcp-server-fetch",
		"uvx mcp_server_fetch":                                                             "pypi [mcp-server-fetch] mcp_server_fetch",
		"uvx mcp-server-sqlite --db-path /tmp/test.db":                                     "pypi [mcp-server-sqlite] mcp-server-sqlite [--db-path /tmp/test.db]",
		"uvx awslabs.aws-documentation-mcp-server@latest":                                  "pypi [awslabs-aws-documentation-mcp-server] awslabs.aws-documentation-mcp-server",
		"uvx --from awslabs.nova-canvas-mcp-server@1.0.2 awslabs.nova-canvas-mcp-server":   "pypi [awslabs-nova-canvas-mcp-server==1.0.2] awslabs.nova-canvas-mcp-server",
		"uvx excel-mcp-server stdio":                                                       "pypi [excel-mcp-server] excel-mcp-server [stdio]",
		"uvx duckduckgo-mcp-server":                                                        "pypi [duckduckgo-mcp-server] duckduckgo-mcp-server",
		"uvx --python 3.11 blender-mcp":                                                    "pypi [blender-mcp] blender-mcp python==3.11.*",
		"uvx -p3.12.4 arxiv-mcp-server --storage-path /p":                                  "pypi [arxiv-mcp-server] arxiv-mcp-server [--storage-path /p] python==3.12.4",
		"uvx --python '>=3.11,<3.14' minimax-mcp -y":                                       "pypi [minimax-mcp] minimax-mcp [-y] python<3.14,>=3.11",
		"uvx --from 'mcp-atlassian[x]==0.11' mcp-atlassian --jira-url=u":                   "pypi [mcp-atlassian[x]==0.11] mcp-atlassian [--jira-url=u]",
		"uvx --with 'httpx>=0.27,<1,rich' --with attrs[a,b] serena":                        "pypi [serena httpx<1,>=0.27 rich attrs[a,b]] serena",
		"uvx --isolated -q --no-cache 'mcp-proxy>0.2' --transport streamablehttp":          "pypi [mcp-proxy>0.2] mcp-proxy [--transport streamablehttp]",
		"/home/u/.local/bin/uvx mcp-server-qdrant@0.8":                                     "pypi [mcp-server-qdrant==0.8] mcp-server-qdrant",
		"uvx --with pandas python -m some_server":                                          "pypi [pandas] python [-m some_server]",
		"uv tool run --from mcp-server-x python3.12 -m mcp_server_x":                       "pypi [mcp-server-x] python [-m mcp_server_x] python==3.12.*",
		"uv tool run mcp-clickhouse":                                                       "pypi [mcp-clickhouse] mcp-clickhouse",
		"uv -q run --with fastmcp fastmcp run /home/u/server.py":                           "pypi [fastmcp] fastmcp [run /home/u/server.py]",
		"uv run --with mcp-clickhouse --python 3.13 mcp-clickhouse":                        "pypi [mcp-clickhouse] mcp-clickhouse python==3.13.*",
		"uv run --no-project --with mcp[cli] -m my.server --port 1":                        "pypi [mcp[cli]] python [-m my.server --port 1]",
		"uv run --with mcp python server.py":                                               "pypi [mcp] python [server.py]",
		"pipx run mcp-server-git":                                                          "pypi [mcp-server-git] mcp-server-git",
		"pipx run --spec 'markitdown-mcp>=0.0.1a4' --python python3.12 markitdown-mcp --x": "pypi [markitdown-mcp>=0.0.1a4] markitdown-mcp [--x] python==3.12.*",
		"pipx run --no-cache yt-mcp==1.2 a":                                                "pypi [yt-mcp==1.2] yt-mcp [a]",

		// interpreters and programs
		"node /home/u/gdrive/dist/index.js --stdio":           "node [/home/u/gdrive/dist/index.js --stdio] file=/home/u/gdrive/dist/index.js",
		"node --max-old-space-size=512 -r dotenv/config a.js": "node [--max-old-space-size=512 -r dotenv/config a.js] file=a.js",
		"node -e 1 a.js":                                  "node [-e 1 a.js]",
		"/usr/local/bin/node -- -a.js":                    "node [-- -a.js] file=-a.js",
		"python3 -m mcp_server_time --local-timezone=UTC": "python [-m mcp_server_time --local-timezone=UTC]",
		"python -um mcp_server_git":                       "python [-um mcp_server_git]",
		"python3.12 -u -X dev -W ignore server.py -m":     "python [-u -X dev -W ignore server.py -m] python==3.12.* file=server.py",
		"/usr/bin/python3 /home/u/server.py":              "python [/home/u/server.py] file=/home/u/server.py",
		"python -c 'import x' a.py":                       "python [-c import x a.py]",
		"/opt/github-mcp-server stdio --read-only":        "command /opt/github-mcp-server [stdio --read-only]",
		"bun run index.ts":                                "command bun [run index.ts]",
		"mcp-grafana":                                     "command mcp-grafana",
	} {
		l, err := parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if got := describe(l); got != want {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
}

func TestCommandsThatAreRefusedSayWhy(t *testing.T) {
	const cure = "; change its command to "
	for line, want := range map[string]string{
		"npx":                                  "npx is not supported for a server in a sandbox: it names no program",
		"npx -y":                               "it names no program",
		"npx -c 'a b'":                         "npx -c is not supported for a server in a sandbox: it runs a line of a shell" + cure,
		"npx --call=a":                         "npx --call is not",
		"npx -yp a":                            "npx -yp is not supported",
		"npx --yes=false a":                    "npx --yes=false is not supported",
		"npx --package":                        "npx --package is not supported for a server in a sandbox: it has no value",
		"npx --no-install a":                   "npx --no-install is not supported for a server in a sandbox: it runs only what is installed already",
		"npx --registry=https://r a":           "npx --registry is not supported for a server in a sandbox: packages come from the registry",
		"npx --node-options=--inspect a":       "npx --node-options is not supported for a server in a sandbox;",
		"npx -y github:user/repo":              "npx github:user/repo is not supported for a server in a sandbox: it is a repository",
		"npx -y user/repo":                     "it is a repository",
		"npx -y git+https://g/r.git":           "it is a repository",
		"npx -y git@github.com:u/r.git":        "it is a repository",
		"npx -y https://x/y.tgz":               "it is an address",
		"npx -y pkg@https://x/y.tgz":           "it is an address",
		"npx -y ./server":                      "it is a path",
		"npx .":                                "it is a path",
		"npx -y file:../x":                     "it is a path",
		"npx -y x.tgz":                         "it is a file",
		"npx -y alias@npm:real@1":              "it is an alias",
		"npx -y -p /x cmd":                     "it is a path",
		"npx -y @scope":                        "it is not the name of a package",
		"npx -y @scope/a/b":                    "it is not the name of a package",
		"npx -y 'a@1;x'":                       "what follows the last @ is no version",
		"npx -p a ../cmd":                      "npx ../cmd is not supported for a server in a sandbox: with --package it must be",
		"npm run start":                        "npm run is not supported for a server in a sandbox: only npm exec is",
		"npm":                                  "only npm exec is",
		"npm -- exec a":                        "only npm exec is",
		"npm exec a --flag":                    "npm exec --flag is not supported",
		"npm exec -p a b":                      "npm exec -p is not supported",
		"bunx --bun a":                         "bunx --bun is not supported for a server in a sandbox: it runs the server with Bun",
		"uvx":                                  "uvx is not supported for a server in a sandbox: it names no program",
		"uvx --from git+https://g/r cmd":       "uvx git+https://g/r is not supported for a server in a sandbox: it is a repository",
		"uvx git+https://g/r":                  "it is a repository",
		"uvx --from ./x cmd":                   "it is a path",
		"uvx --from . cmd":                     "it is a path",
		"uvx --from 'a @ https://x/a.whl' cmd": "it is an address",
		"uvx --from a.whl cmd":                 "it is a file",
		"uvx --index-url https://x a":          "uvx --index-url is not supported for a server in a sandbox: packages come from the index that the policy sets",
		"uvx --default-index=https://x a":      "uvx --default-index is not",
		"uvx --prerelease=allow a":             "uvx --prerelease is not supported for a server in a sandbox;",
		"uvx --with-editable . a":              "uvx --with-editable is not supported for a server in a sandbox: it is about a project",
		"uvx --with-requirements r.txt a":      "write them with --with",
		"uvx --env-file .env a":                "write them as the server's environment",
		"uvx --exclude-newer 2026-01-01 a":     "[packages] excludeNewer",
		"uvx --python /usr/bin/python3 a":      "uvx --python /usr/bin/python3 is not supported for a server in a sandbox: only versions such as",
		"uvx --python pypy3.10 a":              "only versions such as",
		"uvx a@>=1":                            "neither a version nor latest",
		"uvx a==1@2":                           "a version before its @ and one behind",
		"uvx --with git+https://g/r a":         "uvx --with git+https://g/r is not",
		"uvx --from a 'b c'":                   "uvx b c is not supported for a server in a sandbox: it must be a program of the packages",
		"uvx python -m x":                      "it is Python itself",
		"uvx --from python cmd":                "it is Python itself",
		"uv --directory /p run server.py":      "uv --directory is not supported for a server in a sandbox: it is about a project",
		"uv run server.py":                     "without --with",
		"uv run --with a server.py":            "write --with PACKAGE python FILE",
		"uv run --project /p --with a b":       "it is about a project",
		"uv pip install a":                     "uv pip is not supported for a server in a sandbox: only uv tool run and uv run are",
		"uv":                                   "only uv tool run",
		"pipx install a":                       "pipx install is not",
		"pipx run --path ./a":                  "it is about a project",
		"pipx run https://x/a.py":              "it is an address",
		"/home/u/.venv/bin/python -m server":   "/home/u/.venv/bin/python is not supported for a server in a sandbox: it is a Python with packages of its own",
		"./venv/bin/python3 s.py":              "a Python with packages of its own",
		"pnpm dlx a":                           "pnpm is not supported for a server in a sandbox: only npx",

		"npx -p " + strings.Repeat("a -p ", 60) + "a b":  "it is there 61 times",
		"uvx --with " + strings.Repeat("a,", 60) + "a b": "names more than 50 packages",
	} {
		l, err := parse(line)
		if err == nil {
			t.Errorf("%s: it is %s", line, describe(l))
			continue
		}
		if got := err.Error(); !strings.Contains(got, want) || !strings.Contains(got, cure) {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
		if !reflect.DeepEqual(l, commandline.Line{}) {
			t.Errorf("%s: an error, and also %s", line, describe(l))
		}
	}
}

// TestErrorsShowNoControls of a project's file, and not all of it.
func TestErrorsShowNoControls(t *testing.T) {
	for _, hostile := range []string{"\x1b[2J", "a\nb", "\u202ea", strings.Repeat("x", 1<<20)} {
		for _, args := range [][]string{{"--" + hostile}, {hostile}, {"-p", hostile, "x"}, {"--from", hostile, "x"}, {"--with", hostile, "a"}, {"run", hostile}} {
			for _, command := range []string{"npx", "npm", "bunx", "uvx", "uv", "pipx", hostile + "/x/python"} {
				if _, err := commandline.Parse(command, args); err != nil && (len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\n\u202e")) {
					t.Errorf("%.40q %.40q: %.300q", command, args, err.Error())
				}
			}
		}
	}
}

func TestErrorsShowNoLogin(t *testing.T) {
	for _, line := range []string{
		"uvx git+https://s3cret@host/r", "uvx --from git+https://u:s3cret@host/r x", "uvx --with a@https://u:s3cret@host/a.whl b",
		"uvx --index-url https://u:s3cret@host/simple a", "npx -y https://u:s3cret@host/a.tgz", "npx --registry=https://u:s3cret@host a", "npx --//host/:_authToken=s3cret a",
	} {
		if _, err := parse(line); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"npx\x00-y\x00@a/b@^1\x00c", "npx\x00-p\x00a\x00b", "npm\x00exec\x00--yes\x00a\x00--\x00b", "uvx\x00--from\x00a[b]==1\x00c", "uv\x00run\x00--with\x00a,b>=1,<2\x00-m\x00c",
		"pipx\x00run\x00--spec\x00a\x00b", "python3.12\x00-um\x00a", "node\x00-r\x00a\x00b",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		w := strings.Split(line, "\x00")
		l, err := commandline.Parse(w[0], w[1:])
		if err != nil {
			if !reflect.DeepEqual(l, commandline.Line{}) {
				t.Errorf("an error, and also %+v", l)
			}
			return
		}
		if (len(l.NPM) > 0) != (l.Kind == commandline.NPM) || (len(l.PyPI) > 0) != (l.Kind == commandline.PyPI) {
			t.Errorf("a %s with %d and %d packages", l.Kind, len(l.NPM), len(l.PyPI))
		}
		for _, p := range l.PyPI {
			if again, err := requirement.Parse(p.String()); err != nil || again.String() != p.String() {
				t.Errorf("%q is no requirement: %v", p, err)
			}
		}
		for _, p := range l.NPM {
			if strings.ContainsAny(p.String(), ":\\\"'\n;") || strings.HasPrefix(p.String(), "-") || strings.Contains(p.Version, "/") {
				t.Errorf("%q is a package", p)
			}
		}
		// The arguments are the end of what was there, and nothing is made up.
		if l.Kind != commandline.PyPI && len(l.Args) > len(w)-1 {
			t.Errorf("%d arguments of %d", len(l.Args), len(w)-1)
		}
	})
}

// TestContainersAreForTheHost: no change of the command lets a sandbox start one.
func TestContainersAreForTheHost(t *testing.T) {
	for _, line := range []string{"docker run -i --rm mcp/fetch", "/usr/bin/podman run x", "nerdctl run x"} {
		_, err := parse(line)
		host, ok := errors.AsType[*commandline.HostError](err)
		if !ok || !strings.Contains(err.Error(), `; set sandbox = "off" for the server`) || strings.Contains(err.Error(), "change") || !strings.Contains(host.Why(), "has all rights there") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
