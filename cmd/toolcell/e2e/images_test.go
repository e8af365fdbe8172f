package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// ownState is a state folder for one test: what it does to images is nobody
// else's business.
func (h *host) ownState(t *testing.T) env {
	t.Helper()
	dir, err := os.MkdirTemp(h.home, "images-")
	if err != nil {
		t.Fatal(err)
	}
	if h.cred != nil {
		if err := os.Chown(dir, int(h.cred.Uid), int(h.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return env{"TOOLCELL_STATE_DIR": dir}
}

// must runs a command that has to succeed, and gives what it prints.
func (h *host) must(t *testing.T, e env, args ...string) string {
	t.Helper()
	out, errs, code := h.run(t, e, args...)
	if code != 0 {
		t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// inspect gives what `images inspect` says of one image.
func (h *host) inspect(t *testing.T, e env, ref string) map[string]any {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(h.must(t, e, "images", "inspect", ref)), &all); err != nil || len(all) != 1 {
		t.Fatalf("inspect %s: %v, %v", ref, all, err)
	}
	return all[0]
}

func TestImagesAreListedVerifiedRepairedAndRemoved(t *testing.T) {
	_, v := pythons()
	layout := rootfstest.Layout(t, v)
	addr := rootfstest.StartRegistry(t, "", "")
	a, b := addr+"/python:a", addr+"/python:b"
	rootfstest.PushLayout(t, layout, a)
	rootfstest.PushLayout(t, layout, b)
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		e := h.ownState(t)
		h.must(t, e, "images", "pull", "--no-compile", a)
		h.must(t, e, "images", "pull", "--no-compile", b)
		image := h.inspect(t, e, a)
		if refs, _ := image["refs"].([]any); len(refs) != 2 || !strings.HasSuffix(image["python"].(string), "/bin/python3") || image["size"].(float64) < 1e7 || image["inUse"] != false {
			t.Errorf("inspect: %v", image)
		}
		if out := h.must(t, e, "images", "list"); strings.Count(out, addr) != 2 || !strings.Contains(out, "SHARED") {
			t.Errorf("list: %s", out)
		}

		if out := h.must(t, e, "images", "verify"); !strings.Contains(out, ": ok\n") {
			t.Errorf("verify: %s", out)
		}
		file := filepath.Join(image["dir"].(string), image["python"].(string), "../../lib/python"+numbered(v), "base64.py")
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body[len(body)/2] ^= 1
		if err := os.WriteFile(file, body, 0o644); err != nil {
			t.Fatal(err)
		}
		out, errs, code := h.run(t, e, "images", "verify", b)
		if code != 1 || !strings.Contains(out, "base64.py") || !strings.Contains(errs, "hint: toolcell images verify --repair") {
			t.Errorf("a flipped bit: exit %d\n%s%s", code, out, errs)
		}
		if out := h.must(t, e, "images", "verify", "--repair"); strings.Count(out, "fetched again") != 1 {
			t.Errorf("repair: %s", out)
		}
		if out := h.must(t, e, "images", "verify"); strings.Contains(out, "damaged") {
			t.Errorf("after the repair: %s", out)
		}

		h.must(t, e, "images", "rm", a)
		if refs := h.inspect(t, e, b)["refs"].([]any); len(refs) != 1 {
			t.Errorf("after the removal of one name: %v", refs)
		}
		if out := h.must(t, e, "images", "prune", "--unused", "1"); out != "nothing to remove\n" {
			t.Errorf("prune of what was used today: %s", out)
		}
		if out := h.must(t, e, "images", "prune", "--max-size", "1m"); !strings.Contains(out, "removed 1 image, freed ") {
			t.Errorf("prune by size: %s", out)
		}
		if out := h.must(t, e, "images", "list", "--json"); strings.TrimSpace(out) != "[]" {
			t.Errorf("list: %s", out)
		}
		if _, errs, code := h.run(t, e, "images", "rm", a); code != 1 || !strings.Contains(errs, "no image") {
			t.Errorf("rm of nothing: exit %d, %s", code, errs)
		}
	})
}

func TestImageInUseStays(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	ref := "oci:" + rootfstest.Layout(t, v)
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = ref
	c := h.serve(t, e)
	c.python(t, "print(1)").want(t, "1")
	if _, errs, code := h.run(t, e, "images", "rm", ref); code != 1 || !strings.Contains(errs, "in use by another process") {
		t.Errorf("rm: exit %d, %s", code, errs)
	}
	if out := h.must(t, e, "images", "prune", "--max-size", "1m"); out != "nothing to remove\n" {
		t.Errorf("prune: %s", out)
	}
	c.python(t, "import json; print(2)").want(t, "2")
	c.Close()
	waitFor(t, "the image to be free", func() bool {
		_, _, code := h.run(t, e, "images", "rm", ref)
		return code == 0
	})
}

// TestModulesAreCompiledInTheBackground runs on an image without bytecode: the
// first run does not wait for it, later ones have it.
func TestModulesAreCompiledInTheBackground(t *testing.T) {
	_, v := pythons()
	ref := registry(t, "", "", v) + v + "-slim"
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		e := h.ownState(t)
		e["TOOLCELL_IMAGE"] = ref
		h.must(t, e, "images", "pull", "--no-compile", ref)
		dir := h.inspect(t, e, ref)["dir"].(string)
		if out, err := exec.Command("find", filepath.Dir(dir), "-name", "*.pyc", "-delete").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		record := filepath.Join(dir, "..", "bytecode.json")
		if _, err := os.Stat(record); err == nil {
			t.Error("they are compiled before a run needs them")
		}
		code := "import asyncio, os; print(os.path.exists(asyncio.__cached__), bool(os.listdir('/run/toolcell/toolcell_runner/__pycache__')))"
		h.must(t, e, "exec", "-c", code) // what has been compiled by then depends on how busy the host is
		waitFor(t, "the modules to be compiled", func() bool {
			_, err := os.Stat(record)
			return err == nil
		})
		if out := h.must(t, e, "exec", "-c", code); out != "True True\n" {
			b, _ := os.ReadFile(record)
			t.Errorf("later: %s%.300s", out, b)
		}
		// Unchecked: the flags say so (PEP 552), and no time of a source matters.
		flags := "import asyncio; print(open(asyncio.__cached__, 'rb').read(8)[4])"
		if out := h.must(t, e, "exec", "-c", flags); out != "1\n" {
			t.Errorf("flags of the bytecode: %s", out)
		}
		waitFor(t, "the background work to end", func() bool { return !alive(e["TOOLCELL_STATE_DIR"]) })
	})
}

// TestMovedTagIsNoticedInTheBackground: a run takes the image that is here, and
// an hour after the registry was last asked it is asked again, beside the run.
func TestMovedTagIsNoticedInTheBackground(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	addr := rootfstest.StartRegistry(t, "", "")
	ref := addr + "/python:moving"
	rootfstest.PushLayout(t, rootfstest.Layout(t, "minimal"), ref)
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = ref
	h.must(t, e, "images", "pull", ref)
	rootfstest.PushLayout(t, rootfstest.Layout(t, v), ref)
	moved := func() bool {
		_, _, code := h.run(t, e, "exec", "-c", "import asyncio") // not in the minimal library
		return code == 0
	}
	if moved() {
		t.Error("the registry was asked in the way of a run")
	}
	refs, err := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache/images/refs/*.json"))
	if err != nil || len(refs) != 1 {
		t.Fatalf("%q, %v", refs, err)
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(refs[0], long, long); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the moved tag to be noticed", moved)
	waitFor(t, "the background work to end", func() bool { return !alive(e["TOOLCELL_STATE_DIR"]) })
}

func TestPullPolicyNever(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_PULL"], e["TOOLCELL_IMAGE"] = "never", "127.0.0.1:1/py:3"
	out, errs, code := h.run(t, e, "exec", "-c", "print(1)")
	if code != 1 || !strings.Contains(errs, "toolcell images pull 127.0.0.1:1/py:3") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestPullOverTLSWithSettings has a registry with a certificate of its own and a
// mirror before another that does not exist.
func TestPullOverTLSWithSettings(t *testing.T) {
	_, v := pythons()
	ca := rootfstest.NewAuthority(t)
	addr := ca.StartTLSRegistry(t, "someone", "secret")
	ca.PushLayout(t, rootfstest.Layout(t, v), addr+"/hub/python:3", "someone", "secret")
	rootfstest.DockerConfig(t, addr, "someone", "secret")
	h := firstHost(t)
	e := h.ownState(t)
	e["DOCKER_CONFIG"] = os.Getenv("DOCKER_CONFIG")
	ref := "registry.invalid/python:3"
	mirror := "--registry-mirrors=registry.invalid=" + addr + "/hub"
	if _, errs, code := h.run(t, e, "images", "pull", mirror, ref); code != 1 || !strings.Contains(errs, "TOOLCELL_REGISTRY_CA") {
		t.Errorf("without the CA: exit %d\n%s", code, errs)
	}
	e["TOOLCELL_REGISTRY_CA"] = ca.File
	if out := h.must(t, e, "exec", mirror, "--image", ref, "-c", "print(1)"); out != "1\n" {
		t.Errorf("got %q", out)
	}
}

// TestFirstRunTellsOfThePull: a client that gave a token hears how far the pull
// is, and the wait is not the run's time.
func TestFirstRunTellsOfThePull(t *testing.T) {
	// Not parallel: its runs have a few seconds, which may be over before Python starts.
	_, v := pythons()
	ref := "oci:" + rootfstest.Layout(t, v)
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = ref
	heard := heardProgress(t, h, e, map[string]any{"code": "1", "timeout": int(slow(2*time.Second) / time.Second)})
	if len(heard) < 3 {
		t.Fatalf("heard only %d notifications", len(heard))
	}
	last := heard[len(heard)-1]
	if !strings.Contains(last.Message, "pulling "+ref) || last.Total < 1e6 || last.Progress != last.Total {
		t.Errorf("the last is %+v", last)
	}
}

// heardProgress makes a run of a client that asks to be told of its progress,
// and returns what it was told.
func heardProgress(t *testing.T, h *host, e env, arguments map[string]any) []*mcp.ProgressNotificationParams {
	t.Helper()
	var mu sync.Mutex
	var heard []*mcp.ProgressNotificationParams
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, r.Params)
		},
	}).Connect(t.Context(), &mcp.CommandTransport{Command: h.command(t, e, "serve")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	params := &mcp.CallToolParams{Name: "run_python", Arguments: arguments}
	params.SetProgressToken("token")
	result, err := session.CallTool(t.Context(), params)
	if err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return heard
}

// TestPullOnATerminalDrawsBars gives the pull a terminal of its own; without one
// it is quiet.
func TestPullOnATerminalDrawsBars(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	ref := "oci:" + rootfstest.Layout(t, v)
	h := firstHost(t)
	_, errs, code := h.run(t, h.ownState(t), "images", "pull", "--no-compile", ref)
	if code != 0 || errs != "" {
		t.Errorf("without a terminal: exit %d, %q", code, errs)
	}
	cmd := h.command(t, h.ownState(t))
	cmd.Path, cmd.Args = "/usr/bin/script", []string{"script", "-qec", "stty cols 120 rows 40; " + bin + " images pull --no-compile " + ref, "/dev/null"}
	if _, err := os.Stat(cmd.Path); err != nil {
		t.Skip("needs script: apt-get install bsdutils")
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "MiB") || !strings.Contains(string(out), "done") || !strings.Contains(string(out), "sha256:") {
		t.Errorf("%v: %q", err, out)
	}
}

// TestInterruptedPull: Ctrl-C ends a pull at once, and the next one completes.
func TestInterruptedPull(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	ref := "oci:" + rootfstest.Layout(t, v)
	h := firstHost(t)
	e := h.ownState(t)
	cmd := h.command(t, e, "images", "pull", ref)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the pull to begin", func() bool {
		found, _ := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache/images/layers/.tmp-*/entries"))
		return len(found) > 0
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the pull went on to its end")
	}
	for _, folder := range []string{"rootfs", "layers"} {
		if left, _ := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache/images", folder, ".tmp-*")); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	h.must(t, e, "images", "pull", ref)
}
