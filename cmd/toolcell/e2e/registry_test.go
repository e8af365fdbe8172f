package e2e

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// isDynamic reports whether a program asks for a dynamic loader.
func isDynamic(t *testing.T, path string) bool {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}

func TestImagesPullAndList(t *testing.T) {
	_, v := pythons()
	prefix := registry(t, "", "", v)
	onHosts(t, func(t *testing.T, h *host) {
		ref := prefix + v + "-slim"
		out, errs, code := h.run(t, nil, "images", "pull", ref)
		if code != 0 || !strings.Contains(out, "sha256:") {
			t.Fatalf("pull: exit %d\n%s%s", code, out, errs)
		}
		out, errs, code = h.run(t, nil, "images", "list", "--json")
		var list []map[string]any
		if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
			t.Fatalf("list: exit %d, %v\n%s%s", code, err, out, errs)
		}
		found := false
		for _, e := range list {
			found = found || e["ref"] == ref
		}
		if !found {
			t.Errorf("list: %s", out)
		}
		// The tag is cached: no network is needed any more.
		out, errs, code = h.run(t, env{"HTTP_PROXY": "http://127.0.0.1:1"}, "exec", "--image", ref, "-c", "import sys; print(sys.version_info[1])")
		if code != 0 || "3."+out != numbered(v)+"\n" {
			t.Errorf("exec: exit %d, %q\n%s", code, out, errs)
		}
	})
}

func TestRegistryWithPassword(t *testing.T) {
	_, v := pythons()
	prefix := registry(t, "someone", "secret", v)
	h := firstHost(t)
	ref := prefix + v + "-slim"
	_, errs, code := h.run(t, nil, "exec", "--image", ref, "-c", "print(1)")
	if code != 1 || strings.Contains(errs, "secret") {
		t.Errorf("without a password: exit %d\n%s", code, errs)
	}
	addr, _, _ := strings.Cut(prefix, "/")
	rootfstest.DockerConfig(t, addr, "someone", "secret")
	out, errs, code := h.run(t, env{"DOCKER_CONFIG": os.Getenv("DOCKER_CONFIG")}, "exec", "--image", ref, "-c", "print(1)")
	if code != 0 || out != "1\n" {
		t.Errorf("with the password: exit %d, %q\n%s", code, out, errs)
	}
}

func TestImagesThatCannotBeHad(t *testing.T) {
	_, v := pythons()
	prefix := registry(t, "", "", v)
	h := firstHost(t)
	c := map[string]string{
		"no such tag":        prefix + "9.9",
		"no such repository": strings.Replace(prefix, "python", "nothing", 1) + "1",
		"refused":            "127.0.0.1:1/python:3",
		"no such layout":     "oci:" + filepath.Join(shared, "nothing"),
		"no such archive":    "docker-archive:" + filepath.Join(shared, "nothing.tar"),
	}
	for name, ref := range c {
		t.Run(name, func(t *testing.T) {
			s := h.serve(t, env{"TOOLCELL_IMAGE": ref})
			r := s.python(t, "print(1)")
			if r.status() != "sandbox_error" || !strings.Contains(r.text, ref[strings.Index(ref, ":")+1:]) {
				t.Errorf("got %s", r.text)
			}
		})
	}
}

// TestLocalImages runs the same image from a layout, without a registry.
//
//test:mainjob
func TestLocalImages(t *testing.T) {
	_, v := pythons()
	layout := rootfstest.Layout(t, v)
	// The folder with the images may be one that only we can read.
	out, errs, code := firstHost(t).run(t, nil, "exec", "--image", "oci:"+layout, "-c", "import sys; print(sys.version_info[1])")
	if code != 0 || "3."+out != numbered(v)+"\n" {
		t.Errorf("exit %d, %q\n%s", code, out, errs)
	}
}
