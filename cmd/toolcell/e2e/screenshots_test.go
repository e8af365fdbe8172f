//go:build screenshots

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestScreenshots takes the pictures of `toolcell ui` that are in the documents: a question that waits, and a
// run that has failed. `make screenshots` calls it.
func TestScreenshots(t *testing.T) {
	npmProgram(t, "playwright-mcp")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("needs Chromium: apt-get install chromium")
	}
	w := newWorkshop(t)
	for name, text := range exampleServers(t, w.home) {
		w.put(t, "home/"+name, text)
	}
	w.put(t, "home/.config/toolcell/policy.toml", "[default]\nask = \"writes\"\n\n[servers.tasks]\ndeny = \"complete_*\"\n")
	c := w.serve(t, w.env)
	c.python(t, `slots = await mcp_calendar.free_slots(date="2026-06-01")
for slot in slots["slots"]:
    print(slot["start"], slot["minutes"])
print(len(slots["gaps"]), "gaps")`, "calendar")
	c.python(t, `# Plan the week.
slots = await mcp_calendar.free_slots(date="2026-06-01")
for text in ("write the offer", "call Ada"):
    await mcp_tasks.add_task(text=text)
print(len(slots["slots"]), "gaps")`, "calendar", "tasks")
	ui := inOtherTerminal(t, w.command(t, w.env, "ui"))
	ui.sees("open in your browser, once: ")
	node := filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules")
	walk := exec.Command(filepath.Join(node, ".bin/node"), "testdata/screenshots.js", os.Getenv("TOOLCELL_SCREENSHOTS"))
	walk.Env = append(os.Environ(), "LINK="+ui.sees("\r\n"), "CHROMIUM="+chromium, "MODULES="+node)
	if out, err := walk.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
