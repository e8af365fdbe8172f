package policy

import (
	"fmt"
	"testing"
)

// TestNamesThatMatchNoToolAreFound, in whatever key they are.
func TestNamesThatMatchNoToolAreFound(t *testing.T) {
	known := func(server string, tools ...string) KnownTools {
		k := KnownTools{Server: Server{Name: server, Alias: server}, Tools: []Tool{}}
		for _, name := range tools {
			k.Tools = append(k.Tools, Tool{Name: name, Alias: "alias_of_" + name})
		}
		return k
	}
	tasks, notes := known("tasks", "list_tasks", "create_task"), known("notes", "read")
	unknown := KnownTools{Server: Server{Name: "later", Alias: "later"}}
	for text, want := range map[string]string{
		"[servers.tasks]\ndeny = ['list_task']":                                  `[[servers.tasks] deny = "list_task" matches no tool; did you mean "list_tasks"?]`,
		"[servers.tasks]\nallow = ['creat_task']":                                `[[servers.tasks] allow = "creat_task" matches no tool; did you mean "create_task"?]`,
		"[servers.tasks]\nask = 'drop'":                                          `[[servers.tasks] ask = "drop" matches no tool]`,
		"[servers.tasks]\nunaskedAllow = ['list_taskz']":                         `[[servers.tasks] unaskedAllow = "list_taskz" matches no tool; did you mean "list_tasks"?]`,
		"[servers.tasks.tools.lits_tasks]\ncallsPerRun = 1":                      `[[servers.tasks.tools.lits_tasks] (tools.lits_tasks) matches no tool; did you mean "list_tasks"?]`,
		"[servers.tasks]\ndeny = ['lst_tasks*']":                                 `[[servers.tasks] deny = "lst_tasks*" matches no tool; did you mean "list_tasks"?]`,
		"[servers.tasks]\ndeny = ['LIST_TASKS', 'alias_of_create_task', '*']":    `[]`,
		"[servers.tasks]\nask = 'writes'\nallow = []":                            `[]`,
		"[servers.'*s']\ndeny = ['read']":                                        `[]`,
		"[servers.'*s']\ndeny = ['reed']":                                        `[[servers."*s"] deny = "reed" matches no tool; did you mean "read"?]`,
		"[servers.later]\ndeny = ['list_task']":                                  `[]`,
		"[default]\ndeny = ['list_task']":                                        `[]`, // it may be of the server that is not known
		"[servers.nowhere]\ndeny = ['list_task']":                                `[]`, // said as a section
		"[servers.tasks]\ndeny = ['list_tasks']\n[servers.notes]\nask = 'write'": `[[servers.notes] ask = "write" matches no tool; did you mean "writes"?]`,
	} {
		got := parsePolicy(t, text).UnmatchedTools([]KnownTools{tasks, notes, unknown})
		if fmt.Sprint(got) != want {
			t.Errorf("%q: got %v, want %s", text, got, want)
		}
	}
	run := parsePolicy(t, "[servers.tasks]\ndeny = ['list_task']\n[servers.'*s']\ndeny = ['reed']").NewEnforcer()
	if got := run.UnmatchedTools(tasks); len(got) != 1 || !got[0].Plain || !run.NamesTools() {
		t.Errorf("of a run: %v", got)
	}
	if got := run.UnmatchedTools(unknown); got != nil {
		t.Errorf("of a server that is not known: %v", got)
	}
	var none *Enforcer
	if none.UnmatchedTools(tasks) != nil || none.NamesTools() || (*Policy)(nil).UnmatchedTools(nil) != nil {
		t.Error("without a policy something is found")
	}
}
