package boundtest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/memory"
)

const ms = time.Millisecond

// A Row is one parser in the table of docs/security.md.
type Row struct {
	Name   string // what it reads
	From   string // who writes that
	Bytes  int    // most of one input; 0 is a stream without end
	Depth  string // and most of what else is counted
	Count  string
	Time   time.Duration // that the largest input takes; 100 ms if it is 0
	Peak   int           // MiB that one call has in use beside its input
	AtOnce int           // most calls at one time in a process
	// Room is how many times its bytes a call takes of the room that all such calls share
	// (package memory), instead of Peak and AtOnce.
	Room int
	// Of is what it is a part of, whose memory or room (package memory) its Peak comes from,
	// instead of AtOnce.
	Of string
	// Cancels says that it obeys a context. What does not is over in Time.
	Cancels bool
}

// Rows are all parsers of untrusted input.
var Rows = []Row{
	{Name: "code with its header", From: "code", Bytes: 4 << 20, Depth: "100", Count: "64 KiB of header, 200 dependencies", Room: memory.Code},
	{Name: "package lock", From: "code, uv", Bytes: 4 << 20, Depth: "100", Count: "250,000 keys and values", Peak: 192, AtOnce: 1, Cancels: true},
	{Name: "requirement", From: "code", Bytes: 64 << 10, Room: memory.Code},
	{Name: "config file, TOML", From: "a project", Bytes: 96 << 10, Depth: "100", Count: "10,000 keys", Peak: 64, AtOnce: 1},
	{Name: "config file, YAML", From: "a project", Bytes: 96 << 10, Depth: "1,000", Count: "200,000 nodes, aliases followed", Peak: 96, AtOnce: 1},
	{Name: "config file, JSON", From: "a project", Bytes: 96 << 10, Depth: "1,000", Count: "60,000 values, with comments", Peak: 64, AtOnce: 1},
	{Name: "entries of a config file", From: "a project", Bytes: 96 << 10, Depth: "1,000", Peak: 64, AtOnce: 1},
	{Name: "a project's settings", From: "a project", Bytes: 64 << 10, Depth: "100", Peak: 32, AtOnce: 1},
	{Name: "tool definition", From: "a server", Bytes: 4 << 20, Depth: "200", Count: "20,000 tools", Room: memory.Definition, Cancels: true},
	{Name: "schema of a tool", From: "a server", Bytes: 256 << 10, Depth: "100", Count: "20,000 parts, 1,000 parameters", Room: memory.Schema},
	{Name: "record of a server's tools", From: "a server", Bytes: 6 << 20, Depth: "200", Count: "20,000 tools, 1 MiB of names", Peak: 64, AtOnce: 4},
	{Name: "tools to search", From: "a server", Bytes: 32 << 20, Depth: "2", Count: "20,000 tools, 50,000 words of a server", Peak: 128, AtOnce: 1, Cancels: true},
	{Name: "query", From: "code", Bytes: 4 << 10, Count: "120 words", Peak: 32, AtOnce: 16},
	{Name: "arguments of a call", From: "code", Bytes: 48 << 20, Depth: "10,000", Count: "500,000 names", Room: memory.Arguments, Cancels: true},
	{Name: "arguments to bind", From: "code, a server", Bytes: 48 << 20, Depth: "64 of a schema", Count: "10,000 names, 64 MiB looked at", Room: memory.Arguments, Cancels: true},
	{Name: "results of planned calls", From: "code", Bytes: 48 << 20, Peak: 24, AtOnce: 16, Cancels: true},
	{Name: "names under rules", From: "a server", Bytes: 1 << 10, Count: "40,000 names that differ in their case only", Peak: 16, AtOnce: 16},
	{Name: "result of a tool", From: "a server", Bytes: 48 << 20, Depth: "10,000", Count: "100,000 contents", Room: memory.Result, Cancels: true},
	{Name: "form of a server", From: "a server", Bytes: 80 << 10, Depth: "10,000", Room: memory.Form},
	{Name: "JSON with secrets", From: "a server", Bytes: 48 << 20, Depth: "10,000", Room: memory.Secrets, Cancels: true},
	{Name: "messages of a server, stdio", From: "a server", Bytes: 48 << 20, Depth: "1,000; results any", Room: memory.Arrival, Cancels: true},
	{Name: "stderr of a server", From: "a server", Count: "lines of 2 KiB, 8 KiB kept", Peak: 16, AtOnce: 16, Cancels: true},
	{Name: "events of a server", From: "a server", Bytes: 48 << 20, Depth: "1,000; results any", Room: memory.Arrival, Cancels: true},
	{Name: "answer of a server, HTTP", From: "a server", Bytes: 48 << 20, Depth: "1,000; results any", Room: memory.Arrival, Cancels: true},
	{Name: "error of a server, HTTP", From: "a server", Bytes: 64 << 10, Peak: 10, AtOnce: 16},
	{Name: "arguments in headers", From: "code, a server", Bytes: 48 << 20, Depth: "10,000; 100 of a schema", Count: "64 KiB of a value", Peak: 24, AtOnce: 16, Cancels: true},
	{Name: "message of a server", From: "a server", Bytes: 48 << 20, Depth: "1,000; results any", Count: "10,000 in a list, 16 inputs", Room: memory.Message, Cancels: true},
	{Name: "page of a list", From: "a server", Bytes: 48 << 20, Depth: "1,048,576", Count: "1,000 pages of 100,000 items", Room: memory.Message, Cancels: true},
	{Name: "definition that is pinned", From: "a server", Bytes: 4 << 20, Depth: "10,000", Room: memory.Definition, Cancels: true},
	{Name: "change of a definition", From: "a server", Bytes: 16 << 10, Depth: "100", Count: "5 parts, 80 lines of each", Peak: 24, AtOnce: 1},
	{Name: "text for people", From: "a server, code", Bytes: 256 << 10, Peak: 12, AtOnce: 16},
	{Name: "names to compare", From: "a server, code", Bytes: 256 << 10, Count: "64 bytes of each", Peak: 8, AtOnce: 16},
	{Name: "text with secrets", From: "a server", Bytes: 80 << 10, Peak: 1, AtOnce: 16},
	{Name: "text on record", From: "code, a server", Bytes: 16 << 10, Peak: 1, AtOnce: 16},
	{Name: "message of the client", From: "a client", Bytes: 32 << 20, Depth: "1,000", Count: "100,000 in a list", Time: 2000 * ms, Peak: 256, AtOnce: 1},
	{Name: "answer to a form", From: "a client", Bytes: 64 << 10, Peak: 1, AtOnce: 16},
	{Name: "arguments under conditions", From: "code", Bytes: 48 << 20, Depth: "10,000", Count: "64 KiB of a text, 1 MiB of a number", Peak: 24, Of: "what shares room", Cancels: true},
	{Name: "output that hints look at", From: "code", Bytes: 1 << 20, Count: "64 KiB of output, 128 KiB of code, 16 KiB of an error", Peak: 16, AtOnce: 16},
	{Name: "fences around code", From: "code", Bytes: 4 << 20, Room: memory.Code},
	{Name: "output of code", From: "code", Count: "200,000 lines", Peak: 12, AtOnce: 32, Cancels: true},
	{Name: "saved tool", From: "code", Bytes: 128 << 10, Depth: "10,000", Count: "100 imports", Room: memory.SavedTool},
	{Name: "parameters of a host call", From: "code", Bytes: 48 << 20, Depth: "10,000", Count: "384 KiB of a text", Peak: 64, AtOnce: 2, Cancels: true},
	{Name: "tool to save", From: "code", Bytes: 512 << 10, Depth: "10,000", Count: "100 imports", Room: memory.SavedTool},
	{Name: "text of a question", From: "code, a server", Bytes: 1 << 20, Count: "4,000 characters shown", Peak: 12, AtOnce: 16},
	{Name: "result as text", From: "code", Bytes: 1 << 20, Count: "200,000 lines, 200 calls", Room: memory.Output},
	{Name: "manifest or index of an image", From: "a registry", Bytes: 8 << 20, Depth: "10,000", Count: "1,000 layers or manifests", Peak: 128, Of: "an image"},
	{Name: "configuration of an image", From: "a registry", Bytes: 16 << 20, Depth: "10,000", Count: "1,000 layers, 1,000 variables", Peak: 96, Of: "an image", Cancels: true},
	{Name: "manifest.json of docker save", From: "an archive", Bytes: 8 << 20, Depth: "10,000", Count: "1,000 images, 20,000 names", Peak: 128, Of: "an image"},
	{Name: "tar of an image", From: "an archive", Bytes: 16 << 30, Count: "20,000 files, names of 1 KiB", Peak: 96, Of: "an image", Cancels: true},
	{Name: "compressed layer", From: "a registry", Bytes: 16 << 30, Count: "windows of 128 MiB", Peak: 288, Of: "a layer", Cancels: true},
	{Name: "token of a registry", From: "a registry", Bytes: 64 << 10, Depth: "10,000", Peak: 24, AtOnce: 1},
	{Name: "challenge of a registry", From: "a registry", Bytes: 64 << 10, Peak: 24, AtOnce: 1},
	{Name: "refusal of a registry", From: "a registry", Bytes: 16 << 10, Depth: "10,000", Peak: 24, AtOnce: 1},
	{Name: "credential helper", From: "a program of the user", Bytes: 64 << 10, Depth: "10,000", Peak: 24, AtOnce: 1},
	{Name: "files of a layer", From: "a registry", Bytes: 16 << 30, Depth: "256", Count: "2,000,000 files, 64 MiB of names of folders", Peak: 384, Of: "a layer", Cancels: true},
	{Name: "search path of an image", From: "a registry", Bytes: 128 << 10, Count: "100 folders", Peak: 16, AtOnce: 1, Cancels: true},
	{Name: "bytecode of an image", From: "code", Bytes: 2 << 30, Count: "a file of 64 MiB", Peak: 128, AtOnce: 1, Cancels: true},
	{Name: "record in the cache", From: "a registry", Bytes: 8 << 20, Count: "1,000 layers, 1,000 variables", Peak: 32, AtOnce: 1},
	{Name: "list of bytecode in the cache", From: "an image", Bytes: 32 << 20, Peak: 192, AtOnce: 1, Cancels: true},
	{Name: "page of an index, HTML", From: "an index", Bytes: 64 << 20, Count: "a tag of 256 KiB", Peak: 48, AtOnce: 1, Cancels: true},
	{Name: "page of an index, JSON", From: "an index", Bytes: 64 << 20, Depth: "10,000", Count: "a text of 1 MiB", Peak: 48, AtOnce: 1, Cancels: true},
	{Name: "newest release", From: "an index", Bytes: 1 << 20, Depth: "10,000", Time: 500 * ms, Peak: 128, AtOnce: 1},
	{Name: "directory of a wheel", From: "an index", Bytes: 8 << 20, Depth: "100", Count: "200,000 files, 50,000 folders", Peak: 64, Of: "a wheel", Cancels: true},
	{Name: "files of a wheel", From: "an index", Bytes: 1 << 30, Depth: "100", Count: "200,000 files", Peak: 64, Of: "a wheel", Cancels: true},
	{Name: "RECORD of a wheel", From: "an index", Bytes: 16 << 20, Count: "200,000 files, lines of 16 KiB", Peak: 64, Of: "a wheel", Cancels: true},
	{Name: "METADATA of a wheel", From: "an index", Bytes: 4 << 20, Peak: 24, Of: "a wheel"},
	{Name: "entry points of a package", From: "an index", Bytes: 256 << 10, Count: "1,000 programs, lines of 4 KiB", Peak: 4, AtOnce: 16},
	{Name: "lock of npm", From: "a registry", Bytes: 4 << 20, Depth: "10,000", Count: "3,000 packages, 20 inside each other", Time: 200 * ms, Room: memory.Lock},
	{Name: "tarball of npm", From: "a registry", Bytes: 256 << 20, Depth: "100", Count: "200,000 files and folders of a layer", Peak: 24, Of: "a tarball", Cancels: true},
	{Name: "package.json", From: "a registry", Bytes: 1 << 20, Depth: "10,000", Count: "1,000 programs", Peak: 8, Of: "a tarball"},
	{Name: "errors of npm", From: "a registry", Bytes: 256 << 10, Peak: 1, AtOnce: 4},
	{Name: "errors of uv", From: "an index", Bytes: 256 << 10, Peak: 24, AtOnce: 1},
	{Name: "picture", From: "code", Bytes: 32 << 20, Count: "16 million pixels, 2 s of all pictures of a run", Peak: 160, AtOnce: 1, Cancels: true},
	{Name: "names of files", From: "code", Bytes: 1 << 20, Count: "320 files", Peak: 4, AtOnce: 16},
	{Name: "request of code", From: "code", Bytes: 32 << 10, Count: "500 lines of header", Peak: 1, AtOnce: 1024},
	{Name: "answer of a host", From: "a host", Bytes: 32 << 10, Count: "500 lines of header", Peak: 1, Of: "a request of code"},
	{Name: "question about a name", From: "code", Bytes: 4 << 10, Count: "one question", Peak: 1, Of: "a request of code"},
	{Name: "TLS handshake of code", From: "code", Bytes: 32 << 10, Peak: 1, Of: "a request of code"},
	{Name: "answer of a proxy", From: "the proxy of the host", Bytes: 32 << 10, Peak: 1, Of: "a request of code"},
	{Name: "metadata for logins", From: "a server", Bytes: 1 << 20, Depth: "10,000", Peak: 12, AtOnce: 4},
	{Name: "registration of a client", From: "a server", Bytes: 256 << 10, Depth: "10,000", Peak: 8, AtOnce: 1},
	{Name: "token of an authorization server", From: "a server", Bytes: 256 << 10, Depth: "10,000", Peak: 16, AtOnce: 4},
	{Name: "challenge of a server", From: "a server", Bytes: 64 << 10, Count: "100 parameters", Peak: 1, AtOnce: 16},
	{Name: "browser that comes back", From: "a program of this host", Bytes: 64 << 10, Peak: 4, AtOnce: 1},
	{Name: "answer of a template", From: "code", Bytes: 1 << 20, Depth: "10,000", Peak: 48, AtOnce: 4},
	{Name: "frame of the runner", From: "code", Bytes: 48 << 20, Depth: "10,000", Count: "100 members, 256 calls", Peak: 8, AtOnce: 16, Cancels: true},
	{Name: "stack of a run", From: "code", Bytes: 512 << 10, Depth: "2", Count: "400 frames", Peak: 1, AtOnce: 16},
}

func find(name string) (Row, bool) {
	for _, r := range Rows {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

// Table is the table of docs/security.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| what is read | from | bytes | depth | count | time | memory | at once |\n|---|---|--:|--:|---|---|--:|--:|\n")
	shared := (memory.Large + memory.Small + memory.Arriving + memory.Fetches + memory.Images) >> 20
	all := shared
	for _, r := range Rows {
		all += r.Peak * r.AtOnce
		peak, atOnce := sizeText(r.Peak<<20), strconv.Itoa(r.AtOnce)
		if r.Of != "" {
			atOnce = "as part of " + r.Of
		}
		if r.Room > 0 {
			peak, atOnce = strings.TrimPrefix(fmt.Sprintf("%d times its bytes", r.Room), "1 times "), "while there is room"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Name, r.From, sizeText(r.Bytes), cmp.Or(r.Depth, "–"), cmp.Or(r.Count, "–"), r.timeText(), peak, atOnce)
	}
	fmt.Fprintf(&b, "| room for calls that share it | | | | | | %d MiB | |\n", shared)
	fmt.Fprintf(&b, "| all of them at the same moment | | | | | | %d MiB | |\n", all)
	return b.String()
}

// peak is the most bytes that a call takes beside its input.
func (r Row) peak() int {
	if r.Room > 0 {
		return r.Room*r.Bytes + garbage
	}
	return r.Peak << 20
}

// whole is the most that the largest input may take.
func (r Row) whole() time.Duration { return cmp.Or(r.Time, mostAtOnce) }

func (r Row) timeText() string {
	if r.Cancels {
		return "until it is cancelled"
	}
	return fmt.Sprintf("%d ms", r.whole().Milliseconds())
}

func sizeText(n int) string {
	if n == 0 {
		return "no end"
	}
	if n >= 1<<30 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
