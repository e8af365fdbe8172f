package sandboxed

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/oci/spec"
)

// home are the variables by which programs find their folders in HOME.
var home = map[string]string{
	"HOME":             spec.HomeTarget,
	"XDG_CONFIG_HOME":  spec.HomeTarget + "/.config",
	"XDG_CACHE_HOME":   spec.HomeTarget + "/.cache",
	"XDG_DATA_HOME":    spec.HomeTarget + "/.local/share",
	"XDG_STATE_HOME":   spec.HomeTarget + "/.local/state",
	"npm_config_cache": spec.HomeTarget + "/.npm",
	"UV_CACHE_DIR":     spec.HomeTarget + "/.cache/uv",
}

// environment is what a server finds: the image's variables, those of its entry and of its network, and
// what has to be otherwise in a sandbox than the entry may say. Nothing of this process's own is in it.
// Folders of HOME that the entry has in one of the mounts stay there.
func environment(p *Prepared, ofEntry map[string]string, mounts []spec.Mount) []string {
	env := map[string]string{"LANG": "C.UTF-8", "TMPDIR": "/tmp"}
	path := "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
	for _, kv := range p.Env {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" && value != "" {
			path = value
		}
		if name != "" && !strings.ContainsRune(kv, 0) { // an image may say anything
			env[name] = value
		}
	}
	maps.Copy(env, ofEntry)
	for name, value := range home {
		if name == "HOME" || !shown(mounts, env[name]) {
			env[name] = value
		}
	}
	env["PATH"] = strings.Join(append(slices.Clone(p.Path), path), ":") // that of the host leads nowhere
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}

// shown reports whether a path is that of a mount, or below it.
func shown(mounts []spec.Mount, at string) bool {
	return slices.ContainsFunc(mounts, func(m spec.Mount) bool {
		rest, err := filepath.Rel(m.Target, at)
		return err == nil && filepath.IsLocal(rest)
	})
}
