package policy

import (
	"fmt"
	"strconv"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// sandbox says what the keys about the sandbox have.
func (e *explanation) sandbox(k sandboxKeys) {
	e.word("sandbox", string(k.Sandbox), map[string]string{"on": "it runs in a sandbox", "off": "it runs on this host, without a sandbox"})
	if k.Image != "" {
		e.add("image", fmt.Sprintf("image = %q", string(k.Image)), "its sandbox has this image")
	}
	e.hosts("network", k.Network, "in its sandbox it may reach these hosts")
	for _, m := range k.Mounts {
		says := "in its sandbox it may read this"
		if m.Write {
			says = "in its sandbox it may read and write this"
		}
		e.add("mounts", text.Bound(fmt.Sprintf("mounts = [{ source = %q, target = %q, write = %t }]", m.Source, m.Target, m.Write), 1000), says)
	}
	if k.Memory != 0 {
		e.add("memory", fmt.Sprintf("memory = %d", k.Memory), "it may have "+text.Size(int64(k.Memory))+" of memory")
	}
	if k.CPUs != 0 {
		n := strconv.FormatFloat(float64(k.CPUs), 'g', -1, 64)
		e.add("cpus", "cpus = "+n, "it may use "+n+" processors at a time")
	}
	if k.PIDs != 0 {
		e.add("pids", fmt.Sprintf("pids = %d", k.PIDs), fmt.Sprintf("it may have %d processes and threads", k.PIDs))
	}
	for _, s := range k.Secrets {
		if s.plain != "" {
			e.add("secrets", fmt.Sprintf("secrets = [%q]", s.plain), "it gets the value of this variable")
			continue
		}
		e.add("secrets", fmt.Sprintf("secrets = [{ env = %q, host = %q, header = %q }]", s.variable(), s.ofHost.Host(), s.ofHost.Header()),
			"the host gets the value of this variable, the server a placeholder")
	}
	e.hosts("install", k.Install, "install scripts of its packages run, and may reach these hosts")
}

// hosts says what the rules about hosts are.
func (e *explanation) hosts(key string, rules *hosts.ServerRules, says string) {
	if rules != nil {
		e.add(key, text.Bound(key+" = "+rules.String(), 1000), says)
	}
}
