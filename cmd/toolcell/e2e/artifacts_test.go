package e2e

import (
	"bytes"
	"encoding/base64"
	"image"
	_ "image/jpeg" // what clients get
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/imaging/imagingtest"
)

// leave leaves files of every kind in /workspace/out.
const leave = `
import os
os.chdir("/workspace/out")
open("data.csv", "w").write("a,b\n1,2\n")
os.makedirs("sub/deep")
open("sub/deep/raw.bin", "wb").write(bytes(range(256)))
os.close(os.open("private.txt", os.O_CREAT | os.O_WRONLY, 0o600)); open("private.txt", "w").write("for me")
os.symlink("/etc/passwd", "link")
os.mkfifo("pipe")
open("päper of \t mine?.txt", "w").write("x")
`

// files gives the files that a result lists, by name.
func (r reply) files() map[string]map[string]any {
	out := map[string]map[string]any{}
	list, _ := r.fields["files"].([]any)
	for _, f := range list {
		file, _ := f.(map[string]any)
		name, _ := file["name"].(string)
		out[name] = file
	}
	return out
}

// read reads a file of a run as a resource.
func (c *client) read(t *testing.T, file map[string]any) *mcp.ResourceContents {
	t.Helper()
	uri, _ := file["uri"].(string)
	res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatalf("reading %q: %v", uri, err)
	}
	return res.Contents[0]
}

// TestFilesOutliveTheRun in every kind of sandbox: how the code ended does not
// matter.
//
//test:mainjob
func TestFilesOutliveTheRun(t *testing.T) {
	t.Parallel()
	ends := map[string]struct{ code, status string }{
		"well":            {"", "success"},
		"with an error":   {"raise ValueError", "error"},
		"hard":            {"import os; os._exit(3)", "error"},
		"by a signal":     {"import os; os.kill(os.getpid(), 9)", "error"},
		"out of time":     {"while True: pass", "timeout"},
		"out of memory":   {"x = [bytearray(1 << 24) for _ in range(1000)]\nwhile True: x.append(bytes(1 << 20))", ""},
		"written at exit": {"import atexit\natexit.register(lambda: open('/workspace/out/late.txt', 'w').write('late'))", "success"},
	}
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		c.python(t, "import os; print(os.listdir('/workspace/out'))").want(t, "[]")
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				args := map[string]any{"code": leave + end.code}
				if end.status == "timeout" {
					args["timeout"] = seconds(5)
				}
				r := c.call(t, args)
				if end.status != "" && r.status() != end.status {
					t.Errorf("status = %q, want %q: %s", r.status(), end.status, r.text)
				}
				files := r.files()
				for name, want := range map[string]string{"data.csv": "a,b\n1,2\n", "päper of _ mine?.txt": "x"} {
					if f := files[name]; f == nil {
						t.Errorf("%s is not listed: %s", name, r.text)
					} else if got := c.read(t, f); got.Text != want {
						t.Errorf("%s is %q", name, got.Text)
					}
				}
				if f := files["sub_deep_raw.bin"]; f == nil {
					t.Errorf("no file of a folder: %s", r.text)
				} else if got := c.read(t, f); len(got.Blob) != 256 || f["size"] != 256.0 || got.MIMEType != "application/octet-stream" {
					t.Errorf("raw.bin: %+v", f)
				}
				if files["late.txt"] == nil && name == "written at exit" {
					t.Errorf("what was written at exit is lost: %s", r.text)
				}
				if files["link"] != nil || files["pipe"] != nil || !strings.Contains(r.text, "no links or devices: left out link, pipe") &&
					!strings.Contains(r.text, "no links or devices: left out pipe, link") {
					t.Errorf("links: %s", r.text)
				}
				if private := files["private.txt"]; private == nil && !strings.Contains(r.text, "private.txt could not be kept: permission denied") {
					t.Errorf("a file for its owner only is neither there nor spoken of: %s", r.text)
				} else if private == nil && end.status == "success" {
					t.Errorf("a file for its owner only is lost: %s", r.text)
				}
			})
		}
	})
}

// TestNothingOutsideOfOutIsKept: neither what links lead to nor what takes the
// place of the folder.
func TestNothingOutsideOfOutIsKept(t *testing.T) {
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host"})
	for name, code := range map[string]string{
		"a link in its place": "import os\nos.rmdir('/workspace/out'); os.symlink('/etc', '/workspace/out')",
		"a file in its place": "import os\nos.rmdir('/workspace/out'); open('/workspace/out', 'w').write('x')",
		"a folder by a link":  "import os\nos.symlink('/etc', '/workspace/out/etc')",
		"nothing":             "import os\nos.rmdir('/workspace/out')",
		"beside it":           "open('/workspace/x', 'w').write('x')",
	} {
		t.Run(name, func(t *testing.T) {
			if r := c.python(t, code); r.isError || len(r.files()) != 0 {
				t.Errorf("%s", r.text)
			}
		})
	}
}

// TestFilesAreRefusedBeyondBounds: a run can fill neither the disk nor the
// client's memory.
func TestFilesAreRefusedBeyondBounds(t *testing.T) {
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host"})
	r := c.python(t, "f = open('/workspace/out/sparse', 'wb'); f.truncate(1 << 40); f.close(); open('/workspace/out/small', 'w').write('x')")
	if f := r.files(); f["sparse"] != nil || f["small"] == nil || !strings.Contains(r.text, "sparse could not be kept: the files of a run can have 128 MiB in all") {
		t.Errorf("a sparse file: %s", r.text)
	}
	r = c.python(t, "for i in range(1000): open(f'/workspace/out/{i:04}', 'w').close()")
	if len(r.files()) != 256 || !strings.Contains(r.text, "has 1000 new files") {
		t.Errorf("many files: %d listed", len(r.files()))
	}
	r = c.python(t, "open('/workspace/out/big', 'wb').write(bytes(20 << 20))")
	uri, _ := r.files()["big"]["uri"].(string)
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "more than the 11 MiB") {
		t.Errorf("reading a large file: %v", err)
	}
	for _, uri := range []string{"toolcell://runs/0000000000/x", "toolcell://runs/" + strings.Split(uri, "/")[3] + "/..%2F..%2Ftools", "toolcell://runs/../x"} {
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s can be read", uri)
		}
	}
	list, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(list.ResourceTemplates) != 1 || list.ResourceTemplates[0].URITemplate != "toolcell://runs/{id}/{name}" {
		t.Errorf("templates: %+v, %v", list, err)
	}
}

// TestOldFilesAreRemoved by size, and never those of the last run.
func TestOldFilesAreRemoved(t *testing.T) {
	h := *firstHost(t)
	h.home = t.TempDir()
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_FILES_MAX_SIZE": "5m"})
	write := "open('/workspace/out/x', 'wb').write(bytes(3 << 20))"
	first := c.python(t, write).files()["x"]
	last := c.python(t, write).files()["x"]
	waitFor(t, "the first run's files to go", func() bool {
		entries, _ := os.ReadDir(filepath.Join(h.home, "state", "state", "runs"))
		return len(entries) == 1
	})
	c.read(t, last)
	uri, _ := first["uri"].(string)
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "any more") {
		t.Errorf("reading what was removed: %v", err)
	}
}

// TestLongOutputIsKeptWhole and the note that it was cut says where.
func TestLongOutputIsKeptWhole(t *testing.T) {
	t.Parallel()
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host"})
	r := c.python(t, "for i in range(400_000): print(i)\nimport sys; print('short', file=sys.stderr)")
	f := r.files()["stdout.txt"]
	if f == nil || r.files()["stderr.txt"] != nil {
		t.Fatalf("files: %v", r.files())
	}
	uri, _ := f["uri"].(string)
	if !strings.Contains(r.text, "left out; all of it: "+uri+"\n") || len(r.text) > 33<<10 {
		t.Errorf("%d characters, or the line in the cut does not say where the rest is", len(r.text))
	}
	if got := strings.Fields(c.read(t, f).Text); len(got) != 400_000 || got[0] != "0" || got[399_999] != "399999" {
		t.Errorf("%d lines were kept", len(got))
	}
}

// TestExecSaysWhereFilesAre: the path can be opened.
func TestExecSaysWhereFilesAre(t *testing.T) {
	h := firstHost(t)
	_, stderr, code := h.run(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", "open('/workspace/out/a b.txt', 'w').write('hi')")
	_, path, _ := strings.Cut(stderr, "kept ")
	path, _, _ = strings.Cut(path, " (text/plain, 2 bytes)")
	if b, err := os.ReadFile(path); err != nil || string(b) != "hi" || code != 0 {
		t.Errorf("%v: %s", err, stderr)
	}
}

// svgOf is an object that shows itself as SVG, where nothing makes PNG of it, pngOf as PNG: of one color,
// made with zlib alone.
const (
	svgOf = "import sys; sys.modules['cairosvg'] = None\nclass S:\n    def _repr_svg_(self): return '<svg xmlns=\"http://www.w3.org/2000/svg\"/>'\n"
	pngOf = `
import struct, zlib
def chunk(kind, body): return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
class P:
    def __init__(self, w, h): self.w, self.h = w, h
    def _repr_png_(self):
        rows = (b'\0' + b'\xff\0\0' * self.w) * self.h
        return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', self.w, self.h, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')
`
)

// pictures gives the pictures of a run, decoded.
func (c *client) pictures(t *testing.T, code string) (r reply, all []image.Image) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code}})
	if err != nil {
		t.Fatal(err)
	}
	fields, _ := res.StructuredContent.(map[string]any)
	for _, content := range res.Content[1:] {
		body := content.(*mcp.ImageContent)
		m, kind, err := image.Decode(bytes.NewReader(body.Data))
		if err != nil || "image/"+kind != body.MIMEType || len(body.Data) > 400<<10 {
			t.Errorf("a picture of %d bytes, %s: %v", len(body.Data), body.MIMEType, err)
		}
		all = append(all, m)
	}
	return reply{res.Content[0].(*mcp.TextContent).Text, fields, res.IsError}, all
}

// TestPicturesAreShown that show themselves, in every output mode, and no mode
// has their bytes in its text.
//
//test:mainjob
func TestPicturesAreShown(t *testing.T) {
	t.Parallel()
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		for _, mode := range []string{"compact", "toon", "json"} {
			c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_OUTPUT": mode})
			r, all := c.pictures(t, pngOf+"display(P(30, 20), P(3000, 1500), 'text')\nfrom mcp.runtime import display as d\nd(P(1, 1))")
			if len(all) != 3 || all[0].Bounds().Dx() != 30 || all[1].Bounds().Dx() != 1024 || all[1].Bounds().Dy() != 512 {
				t.Fatalf("%d pictures: %s", len(all), r.text)
			}
			if red, g, b, _ := all[1].At(500, 250).RGBA(); red>>8 != 255 || g != 0 || b != 0 {
				t.Errorf("its colour is %d %d %d", red, g, b)
			}
			if strings.Contains(r.text, "iVBOR") || !strings.Contains(r.text, "'text'") {
				t.Errorf("text: %s", r.text)
			}
			listed, _ := r.fields["pictures"].([]any)
			first, _ := listed[0].(map[string]any)
			if len(listed) != 3 || first["name"] != "picture-1.png" || first["type"] != "image/png" || first["width"] != 30.0 || first["height"] != 20.0 {
				t.Errorf("listed: %v", listed)
			}
			// What was scaled is there as it was.
			whole, err := png.DecodeConfig(bytes.NewReader(c.read(t, r.files()["picture-2.png"]).Blob))
			if err != nil || whole.Width != 3000 || len(r.files()) != 1 {
				t.Errorf("%v, %v, files %v", whole, err, r.files())
			}
		}
	})
}

// TestPicturesBeyondTheBoundAreFiles, as are those that cannot be shown.
func TestPicturesBeyondTheBoundAreFiles(t *testing.T) {
	h := firstHost(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
	r, all := c.pictures(t, pngOf+"for i in range(1, 11): display(P(i, 1))")
	if len(all) != 8 || len(r.files()) != 2 || r.files()["picture-10.png"] == nil || !strings.Contains(r.text, "2 pictures beyond the 8") {
		t.Errorf("%d pictures: %s", len(all), r.text)
	}
	r, all = c.pictures(t, pngOf+"try:\n  for i in range(100): display(P(1, 1))\nexcept Exception as e: print(i, e)")
	if len(all) != 8 || !strings.Contains(r.text, "64 displaying") {
		t.Errorf("%d pictures: %s", len(all), r.text)
	}
	r, all = c.pictures(t, svgOf+"display(S())")
	if len(all) != 0 || r.files()["picture-1.svg"]["type"] != "image/svg+xml" || !strings.Contains(r.text, "cairosvg") {
		t.Errorf("SVG: %d pictures: %s", len(all), r.text)
	}
	// 40,000 by 40,000 pixels in few bytes, and what is no picture.
	r, all = c.pictures(t, pngOf+"class B:\n  def _repr_png_(self): return P(1, 1)._repr_png_().replace(struct.pack('>II', 1, 1), struct.pack('>II', 40000, 40000))\n"+
		"class C:\n  def _repr_jpeg_(self): return b'no'\ndisplay(B())\ntry: display(C())\nexcept Exception as e: print(e)\ndisplay(P(2, 2))")
	if len(all) != 1 || !strings.Contains(r.text, "cannot be shown") || !strings.Contains(r.text, "neither PNG") {
		t.Errorf("broken ones: %d pictures: %s", len(all), r.text)
	}
	c = h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_PICTURES": "1", "TOOLCELL_PICTURE_SIZE": "16"})
	if r, all = c.pictures(t, pngOf+"display(P(32, 8), P(2, 2))"); len(all) != 1 || all[0].Bounds().Dx() != 16 || all[0].Bounds().Dy() != 4 {
		t.Errorf("with settings: %d pictures: %s", len(all), r.text)
	}
}

// TestPicturesOfARunThatWasStopped are there as far as they were displayed.
func TestPicturesOfARunThatWasStopped(t *testing.T) {
	// Not parallel: its runs have a few seconds, which may be over before Python starts.
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_TIMEOUT": strconv.Itoa(seconds(5))})
	if r, all := c.pictures(t, pngOf+"display(P(3, 3))\nwhile True: pass"); r.status() != "timeout" || len(all) != 1 {
		t.Errorf("%d pictures: %s", len(all), r.text)
	}
}

// TestSlowPicturesAreLeftOut, which would take minutes to decode: the answer comes
// without them, and those of another run come through meanwhile.
func TestSlowPicturesAreLeftOut(t *testing.T) {
	// Not parallel: its runs have a few seconds, which may be over before Python starts.
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host"})
	display := "class J:\n  def _repr_jpeg_(self): return '" + base64.StdEncoding.EncodeToString(imagingtest.SlowJPEG(4096, 10_000)) + "'\ndisplay(J())\n"
	for code, status := range map[string]string{display: "success", display + "while True: pass": "timeout"} {
		begin := time.Now()
		var hog reply
		var others sync.WaitGroup
		others.Go(func() { hog = c.call(t, map[string]any{"code": code, "timeout": seconds(3)}) })
		if r, all := c.pictures(t, pngOf+"display(P(3, 3))"); len(all) != 1 {
			t.Errorf("another run: %d pictures: %s", len(all), r.text)
		}
		others.Wait()
		if took := time.Since(begin); took > slow(30*time.Second) {
			t.Errorf("the answer came after %s", took)
		}
		hog.noted(t, "picture left out: decoding took too long")
		if hog.status() != status || hog.files()["picture-1.jpg"] == nil {
			t.Errorf("%s, files %v: %s", hog.status(), hog.files(), hog.text)
		}
	}
}

// TestSessionsGiveEachFileOnce, and again when it has changed.
func TestSessionsGiveEachFileOnce(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		for _, step := range []struct {
			code string
			want []string
		}{
			{"a = open('/workspace/out/a', 'w'); a.write('1'); a.flush(); open('/workspace/out/b', 'w').close()", []string{"a", "b"}},
			{"print('nothing new')", nil},
			{"a.write('2'); a.flush()", []string{"a"}},
			{pngOf + "display(P(2, 2)); open('/workspace/out/c', 'w').close(); print('x' * 2_000_000)", []string{"c", "stdout.txt"}},
			{"display(P(3, 3))", nil},
		} {
			r := c.call(t, map[string]any{"code": step.code, "session": "s"})
			var got []string
			for name := range r.files() {
				got = append(got, name)
			}
			slices.Sort(got)
			if r.isError || !slices.Equal(got, step.want) {
				t.Errorf("%.60s: files %v, want %v: %.300s", step.code, got, step.want, r.text)
			}
			if strings.Contains(step.code, "display") != (r.fields["pictures"] != nil) {
				t.Errorf("%.60s: pictures %v", step.code, r.fields["pictures"])
			}
		}
	})
}

// TestFilesThatAreGoneAreNoted, however a sandbox was started: what ends with
// /workspace is named once, when it ends.
func TestFilesThatAreGoneAreNoted(t *testing.T) {
	const gone = "in /workspace is gone; write to /workspace/out to keep files"
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		shared := h.mountFolder(t, sharedFolder(t), "shared", 0o755)
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": shared + ":/workspace/shared:ro," + shared + "/file.txt:/workspace/notes.txt:ro"})
		for _, step := range []struct{ session, code, want string }{
			{"", "print(open('notes.txt').read())", ""},
			{"", "open('chart.png', 'w').write('x')\nopen('/workspace/out/kept.txt', 'w').write('x')", "chart.png " + gone},
			{"", "open('chart.png', 'w').write('x')\n1/0", "chart.png " + gone},
			{"", "open('helper.py', 'w').write('x = 1')\nimport os, helper\nos.makedirs('.cache/x'); open('.cache/x/y', 'w').close()", "helper.py " + gone},
			{"a", "open('chart.png', 'w').write('x')", ""},
			{"a", "print(open('chart.png').read())", ""},
			{"a", "mcp.runtime.end_session()", "chart.png " + gone},
		} {
			args := map[string]any{"code": step.code}
			if step.session != "" {
				args["session"] = step.session
			}
			r := c.call(t, args)
			if !strings.Contains(r.text, step.want) || step.want == "" && strings.Contains(r.text, "gone") {
				t.Errorf("%s\n%s\nwant %q", step.code, r.text, step.want)
			}
		}
	})
}
