package images

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker-credential-helpers/client"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	const descriptor = `{"mediaType":"application/vnd.oci.image.layer.v1.tar","size":1,"digest":"sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"}`
	some := func(before, after string) []boundtest.Shape {
		return boundtest.Only(boundtest.JSON(before, after), "deep lists", "open objects", "a wide object", "many empty objects", "long keys", "a long string", "a string that does not end", "a huge number")
	}
	boundtest.Run(t, boundtest.Parser{
		Row: "manifest or index of an image",
		Shapes: append(some(`{"x":`, "}"),
			boundtest.Repeated("layers", `{"layers":[`+descriptor, ","+descriptor, "]}"),
			boundtest.Repeated("empty manifests", `{"manifests":[{}`, ",{}", "]}"),
			boundtest.Counted("annotations", `{"manifests":[{"annotations":{`, `"a%d":"b"`, ",", "}}]}"),
		),
		Parse: func(text []byte) error {
			_, err := parseDocument(text)
			return err
		},
	}, boundtest.Parser{
		Row: "configuration of an image",
		Shapes: append(some(`{"x":`, "}"),
			boundtest.Repeated("history", `{"history":[{}`, ",{}", "]}"),
			boundtest.Repeated("variables", `{"config":{"Env":["A=b"`, `,"A=b"`, "]}}"),
		),
		Read: func(ctx context.Context, r io.Reader) error {
			_, err := readConfig(&contextReader{ctx: ctx, inner: io.LimitReader(r, maxConfig)})
			return err
		},
	}, boundtest.Parser{
		Row: "manifest.json of docker save",
		Shapes: append(some(`[{"x":`, "}]"),
			boundtest.Repeated("layers", `[{"Layers":["a"`, `,"a"`, "]}]"),
			boundtest.Repeated("images", `[{}`, `,{"RepoTags":["a"]}`, "]"),
		),
		Parse: func(text []byte) error {
			_, err := parseSaved(text)
			return err
		},
	}, boundtest.Parser{
		Row:    "tar of an image",
		Shapes: boundtest.Tar(),
		Read: func(ctx context.Context, r io.Reader) error {
			b := &tarBlobs{parts: map[string]part{}, links: map[string]string{}}
			return b.list(ctx, &contextFile{contextReader{ctx: ctx, inner: r}, forward{r}})
		},
	}, boundtest.Parser{
		Row:    "compressed layer",
		Shapes: boundtest.Compressed(),
		Read:   readLayer,
	}, boundtest.Parser{
		Row:    "token of a registry",
		Shapes: append(some(`{"token":`, "}"), boundtest.Lines("", "")...),
		Parse:  func(text []byte) error { return ask(answers{token: text}) },
	}, boundtest.Parser{
		Row:    "challenge of a registry",
		Shapes: challenges(),
		Parse:  func(text []byte) error { return ask(answers{challenge: string(text)}) },
	}, boundtest.Parser{
		Row:    "refusal of a registry",
		Shapes: append(some(`{"errors":[{"detail":`, "}]}"), boundtest.Repeated("errors", `{"errors":[{}`, ",{}", "]}")),
		Parse:  func(text []byte) error { return ask(answers{token: []byte(`{"token":"t"}`), refusal: text}) },
	}, boundtest.Parser{
		Row:    "credential helper",
		Shapes: append(some(`{"Username":"u","Secret":`, "}"), boundtest.Lines("", "")...),
		Parse: func(text []byte) error {
			_, err := client.Get(func(...string) client.Program { return wrote(text) }, "registry.example")
			return err
		},
	})
}

// challenges are values of WWW-Authenticate.
func challenges() []boundtest.Shape {
	return []boundtest.Shape{
		boundtest.Counted("parameters", "Bearer ", `k%d="v"`, ",", ""),
		boundtest.Repeated("commas", "Bearer ", ",", "=v"),
		boundtest.Repeated("a long value", `Bearer realm="`, "v", `"`),
		boundtest.Repeated("a value that does not end", `Bearer realm="`, "v", ""),
		boundtest.Repeated("escapes", `Bearer realm="`, `\"`, `"`),
		boundtest.Counted("schemes", "", `Bearer%d realm="x"`, ", ", ""),
		boundtest.Repeated("spaces", "Bearer ", " ", "x"),
	}
}

// A forward is a stream in which one can go on, but not back.
type forward struct{ io.Reader }

func (f forward) Seek(n int64, whence int) (int64, error) {
	if whence != io.SeekCurrent || n < 0 {
		return 0, errors.New("that is behind")
	}
	_, err := io.CopyN(io.Discard, f, n)
	return 0, err
}

// readLayer decompresses at most 256 MiB of a layer.
func readLayer(ctx context.Context, r io.Reader) error {
	h := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}
	in, err := (&Layer{Digest: h, DiffID: h, Size: -1, blobs: oneBlob{r}}).Open(ctx, nil)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(&contextReader{ctx: ctx, inner: in}, 256<<20))
	return err
}

// answers are those of a registry.
type answers struct {
	challenge      string
	token, refusal []byte
}

// ask has a manifest fetched from a registry.
func ask(a answers) error {
	ref := name.MustParseReference("registry.example/a:1")
	p := Puller{Transport: a, AuthFile: os.DevNull, Backoff: time.Nanosecond}
	_, err := p.fetchManifest(context.Background(), ref, false, v1.Platform{OS: "linux", Architecture: "amd64"})
	return err
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Request: r, Body: io.NopCloser(bytes.NewReader(a.refusal))}
	switch r.URL.Path {
	case "/v2/":
		resp.StatusCode = http.StatusUnauthorized
		resp.Header.Set("WWW-Authenticate", `Bearer realm="https://registry.example/token",service="registry.example"`)
		if a.challenge != "" {
			resp.Header.Set("WWW-Authenticate", a.challenge)
		}
	case "/token":
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(bytes.NewReader(a.token))
	}
	return resp, nil
}

// wrote is a credential helper that wrote something.
type wrote []byte

func (w wrote) Input(io.Reader)         {}
func (w wrote) Output() ([]byte, error) { return w, nil }

// TestHelperThatWritesMuch fails, and little of it is kept.
func TestHelperThatWritesMuch(t *testing.T) {
	const much = "head -c 1000000 /dev/zero | tr '\\0' x"
	for script, want := range map[string]string{much: "it wrote more than", "(" + much + ") >&2; exit 1": "exit status 1: xxx"} {
		out, err := newHelperProgram(t.Context(), "sh", []string{"-c", script}).Output()
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(out)+len(err.Error()) > 2*maxHelperOutput {
			t.Errorf("%s: %d bytes, %.100v", script, len(out), err)
		}
	}
}
