package rights

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

const (
	maxLines = 200 // that are kept of an entry, and of rights
	maxLine  = 300 // bytes of each
)

// Of returns what a server gets beyond a plain sandbox, one on a line, for people. An entry of a project's
// file gets something, too, if the policy says that it runs without one: such entries run in a
// sandbox otherwise.
func Of(server config.Server, box *policy.Sandbox) (lines []string) {
	if server.Project && box.Mode == policy.SandboxOff {
		return []string{"no sandbox: " + shown(box.Rule)}
	}
	if !box.On(server.Project) {
		return nil
	}
	for _, line := range box.Rights() {
		lines = append(lines, shown(line))
	}
	return bounded(lines)
}

// entryOf returns an entry as it is kept.
func entryOf(server config.Server, box *policy.Sandbox, rights []string) Accepted {
	identity := struct {
		Source, Command, Dir, URL, Image string
		Project                          bool
		Args                             []string
	}{server.Source, server.Command, server.Dir, server.URL, box.Image, server.Project, server.Args}
	data, err := json.Marshal(identity)
	if err != nil {
		panic("rights: " + err.Error()) // strings alone
	}
	a := Accepted{
		Digest: fmt.Sprintf("%x", sha256.Sum256(data)), Env: map[string]string{}, Rights: rights, Since: time.Now().UTC(), Entry: describe(server, box),
	}
	for name, value := range server.Env {
		a.Env[digest(name)] = digest(name + "=" + value)
	}
	return a
}

// digest tells texts apart.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%x", sum[:16])
}

// isSame reports whether two entries are one. A new token does not make another entry, so variables
// that the policy has among the secrets do not count; others can change what a command does.
func (a Accepted) isSame(b Accepted, box *policy.Sandbox) bool {
	env := func(a Accepted) map[string]string {
		all := maps.Clone(a.Env)
		for _, name := range box.SecretVariables() {
			delete(all, digest(name))
		}
		return all
	}
	return a.Digest == b.Digest && maps.Equal(env(a), env(b))
}

// describe returns an entry as lines, each with what it is before a colon.
func describe(server config.Server, box *policy.Sandbox) (lines []string) {
	hidden := redact.New(server)
	add := func(what, value string) {
		if value != "" {
			lines = append(lines, shown(what+": "+hidden.Text(value)))
		}
	}
	source := "source file"
	if server.Project {
		source = "source file, a project's"
	}
	lines = append(lines, shown(source+": "+server.Source))
	add("command", server.Command)
	add("address", server.URL)
	for _, arg := range server.Args {
		lines = append(lines, shown("argument: "+hidden.Text(arg)))
	}
	add("folder", server.Dir)
	for _, name := range slices.Sorted(maps.Keys(server.Env)) {
		if !slices.Contains(box.SecretVariables(), name) {
			// Values are often secrets; the beginning of a digest tells one from another.
			lines = append(lines, shown(fmt.Sprintf("environment: %s, whose value has the digest %s", name, digest(name + "=" + server.Env[name])[:8])))
		}
	}
	if box.Image != "" {
		lines = append(lines, shown("image: "+box.Image))
	}
	return bounded(lines)
}

// shown makes a line fit to be kept and shown.
func shown(line string) string {
	return text.Bound(text.Visible(strings.ReplaceAll(line, "\n", `\n`)), maxLine)
}

// bounded keeps the first lines. The digest is of all.
func bounded(lines []string) []string {
	if n := len(lines) - maxLines; n > 0 {
		lines = append(lines[:maxLines:maxLines], fmt.Sprintf("and %s", text.Plural(n, "more line")))
	}
	return lines
}

// differing returns what lines are about that only one of two entries has, in words.
func differing(before, after []string) (parts []string) {
	for _, all := range [][2][]string{{before, after}, {after, before}} {
		for _, line := range all[0] {
			what, _, _ := strings.Cut(line, ":")
			what, _, _ = strings.Cut(what, ",")
			if !slices.Contains(all[1], line) && !slices.Contains(parts, what) {
				parts = append(parts, what)
			}
		}
	}
	if parts == nil {
		parts = []string{"its order, or a part that is not shown,"}
	}
	return parts
}
