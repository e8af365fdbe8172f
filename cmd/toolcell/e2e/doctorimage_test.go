package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// pushChanged pushes an image of a layout with another configuration.
func pushChanged(t *testing.T, layoutDir, ref string, change func(*v1.ConfigFile)) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(layoutDir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	change(config)
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	to, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, img); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorTriesTheImage that is asked for: whether it can be had, and once it is
// here its Python, without asking a registry. It fetches no image.
func TestDoctorTriesTheImage(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	h := firstHost(t)
	prefix := registry(t, "", "", v)
	ref := prefix + v + "-slim"
	pushChanged(t, rootfstest.Layout(t, v), prefix+"arm", func(c *v1.ConfigFile) { c.Architecture = "riscv64" })
	e := h.ownState(t)
	examine := func(image string, more env) (map[string]doctor.Check, int) {
		t.Helper()
		all := env{}
		maps.Copy(all, e)
		maps.Copy(all, more)
		return examined(t, h.command(t, all, "doctor", "--json", "--image", image))
	}
	offline := env{"HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": ""}

	checks, _ := examine(ref, nil)
	if c := checks["RC-IMAGE"]; c.Status != doctor.CheckOK || !strings.Contains(c.Text, "is not here yet, and the first run fetches ") || checks["RC-REGISTRY"].Status != doctor.CheckOK {
		t.Errorf("before a pull: %+v, %+v", c, checks["RC-REGISTRY"])
	}
	if out, _, _ := h.run(t, e, "images", "list", "--json"); strings.Contains(out, ref) {
		t.Errorf("doctor pulled the image: %s", out)
	}
	for name, tt := range map[string]struct{ image, code, text string }{
		"no such tag":        {prefix + "none", "RC-IMAGE", "has no such image"},
		"for other hosts":    {prefix + "arm", "RC-IMAGE", "is made for linux/riscv64 and not for linux/"},
		"no reference":       {"Python:3", "RC-IMAGE", "names of images are in lower case: python:3"},
		"no folder":          {"oci:/no/such", "RC-IMAGE", "no such file or folder"},
		"no registry":        {"127.0.0.1:1/python:3", "RC-REGISTRY", "cannot reach 127.0.0.1:1 (connection refused)"},
		"a broken registry":  {answering(t, 500, "") + "/python:3", "RC-REGISTRY", " answers 500 Internal Server Error"},
		"no registry by far": {"registry.example/python:3", "RC-REGISTRY", "cannot reach the proxy 127.0.0.1:1 (connection refused), through which registry.example would be asked"},
	} {
		checks, code := examine(tt.image, offline)
		if c := checks[tt.code]; c.Status != doctor.CheckFatal || !strings.Contains(c.Text, tt.text) || c.Cure == "" || code != exitHost || libraryWords.MatchString(c.Text) {
			t.Errorf("%s: exit %d, %+v in %v", name, code, c, checks)
		}
	}

	h.must(t, e, "images", "pull", "--no-compile", ref)
	checks, _ = examine(ref, offline)
	if c := checks["RC-IMAGE"]; c.Status != doctor.CheckOK || !strings.Contains(c.Text, "Python 3.") || !strings.Contains(c.Text, " ms") || checks["RC-REGISTRY"].Code != "" {
		t.Errorf("offline, with the image: %+v", checks)
	}
	roots, err := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache/images/rootfs/sha256-*/root/etc/passwd"))
	if err != nil || len(roots) != 1 {
		t.Fatalf("%v, %v", roots, err)
	}
	// The file is a link to the layer's, which stays as it is.
	if err := os.Remove(roots[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(roots[0], []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	checks, code := examine(ref, offline)
	c := checks["RC-IMAGE"]
	if c.Status != doctor.CheckDegraded || !strings.Contains(c.Text, `"etc/passwd": its content has changed`) || code != exitFail {
		t.Fatalf("damaged: exit %d, %+v", code, c)
	}
	cure := h.command(t, e)
	cure.Path, cure.Args = "/bin/sh", []string{"sh", "-c", c.Cure}
	if out, err := cure.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", c.Cure, err, out)
	}
	if checks, _ := examine(ref, offline); checks["RC-IMAGE"].Status != doctor.CheckOK {
		t.Errorf("after its cure: %+v", checks["RC-IMAGE"])
	}
	if checks, code := examine(prefix+"none", env{"TOOLCELL_PULL": "never"}); checks["RC-IMAGE"].Status != doctor.CheckFatal || !strings.Contains(checks["RC-IMAGE"].Cure, " images pull "+prefix+"none") || code != exitHost {
		t.Errorf("with pulling switched off: exit %d, %+v", code, checks["RC-IMAGE"])
	}
}

// TestDoctorKnowsThatTheHostStandsIn for the default image: that is not fatal.
func TestDoctorKnowsThatTheHostStandsIn(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["HTTPS_PROXY"] = "http://127.0.0.1:1"
	checks, code := examined(t, h.command(t, e, "doctor", "--json"))
	if c := checks["RC-REGISTRY"]; c.Status != doctor.CheckDegraded || !strings.Contains(c.Text, "code runs on this host's own Python") || !strings.Contains(c.Cure, " settings set image host") || code != exitFail {
		t.Errorf("exit %d, %+v", code, checks)
	}
	e["TOOLCELL_IMAGE"] = "host" // the cure
	if checks, _ := examined(t, h.command(t, e, "doctor", "--json")); checks["RC-REGISTRY"].Code != "" || checks["RC-SANDBOX"].Status != doctor.CheckOK {
		t.Errorf("after the cure: %+v", checks)
	}
}

// TestDoctorNamesDeadClientEntries, and its cure brings them up to date.
func TestDoctorNamesDeadClientEntries(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.cursor/mcp.json", `{
  // mine
  "mcpServers": {"toolcell": {"command": "/gone/toolcell", "args": ["serve"], "env": {"TOOLCELL_IMAGE": "host"}}}
}
`)
	checks, code := examined(t, w.command(t, w.env, "doctor", "--json"))
	c := checks["RC-CLIENT-GONE"]
	if c.Status != doctor.CheckDegraded || code != exitFail || !strings.Contains(c.Text, file) || !strings.Contains(c.Text, "/gone/toolcell, which does not exist") || c.Cure != bin+" install cursor" {
		t.Fatalf("exit %d, %+v", code, checks)
	}
	cure := w.command(t, w.env)
	cure.Path, cure.Args = "/bin/sh", []string{"sh", "-c", c.Cure}
	if out, err := cure.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := read(t, file); !strings.Contains(text, bin) || !strings.Contains(text, "// mine") || strings.Contains(text, "/gone") {
		t.Errorf("the file is\n%s", text)
	}
	checks, _ = examined(t, w.command(t, w.env, "doctor", "--json"))
	if c := checks["RC-CLIENT"]; c.Status != doctor.CheckOK || !strings.Contains(c.Text, "Cursor") || checks["RC-CLIENT-GONE"].Code != "" {
		t.Errorf("after the cure: %+v", checks)
	}
}

// TestImageCannotReachTheStages by its variables: what starts a sandbox has some of
// its own, and so have Go and the C library.
func TestImageCannotReachTheStages(t *testing.T) {
	t.Parallel()
	prefix := registry(t, "", "", "3.14")
	pushChanged(t, rootfstest.Layout(t, "3.14"), prefix+"odd", func(c *v1.ConfigFile) {
		c.Config.Env = append(c.Config.Env, "_LIBCONTAINER_INITPIPE=3", "_LIBCONTAINER_LOGPIPE=3", "_TOOLCELL_PID1=3:1:1:64:0",
			"_TOOLCELL_ADOPT=3:4:5", "_TOOLCELL_NEST=0:0:0", "GODEBUG=inittrace=1,gctrace=1", "GOTRACEBACK=crash", "MINE=kept")
	})
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		e := env{"TOOLCELL_IMAGE": prefix + "odd", "TOOLCELL_START": h.start}
		c := h.serve(t, e)
		c.python(t, "import os; print(os.environ['MINE'], os.environ['GODEBUG'], [k for k in os.environ if k.startswith('_')])").
			want(t, "kept inittrace=1,gctrace=1 []")
		out, errs, code := h.run(t, e, "exec", "-c", "print('works')")
		if out != "works\n" || strings.Contains(errs, "init ") || code != 0 {
			t.Errorf("exec: %q, %q, %d", out, errs, code)
		}
	})
}
