package runner

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
)

// shownTo plays a host that takes pictures, and gives what came as "name data",
// or refuses all.
func shownTo(t *testing.T, py bridgetest.Python, refuse bool, code string) (rtOutcome, []string) {
	t.Helper()
	var mu sync.Mutex
	var shown []string
	out := rtHost{answer: func(method string, params rtObject) (any, error) {
		if method != "display" {
			return rtAnswer(method, params)
		}
		mu.Lock()
		defer mu.Unlock()
		if refuse {
			return nil, errors.New("a run can display 0 pictures")
		}
		text, _ := params["data"].(string)
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		shown = append(shown, fmt.Sprintf("%s %s", params["name"], data))
		return nil, nil
	}}.run(t, py, code)
	return out, shown
}

func TestDisplayAsksAValueWhatItIs(t *testing.T) {
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		for name, tt := range map[string]struct {
			code  string
			print string
			shown []string
		}{
			"text":               {"display('a', 1, [1, 2], None)", "'a'\n1\n[1, 2]\nNone\n", nil},
			"bytes of a PNG":     {"class P:\n  def _repr_png_(self): return b'png'\ndisplay(P(), P())", "", []string{"picture-1.png png", "picture-2.png png"}},
			"base64 of a JPEG":   {"class P:\n  def _repr_jpeg_(self): return 'anBn'\ndisplay(P())", "", []string{"picture-1.jpg jpg"}},
			"with metadata":      {"class P:\n  def _repr_png_(self): return b'png', {'width': 3}\ndisplay(P())", "", []string{"picture-1.png png"}},
			"a bundle":           {"class P:\n  def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': 'x', 'image/gif': b'gif'}, {}\ndisplay(P())", "", []string{"picture-1.gif gif"}},
			"markdown":           {"class M:\n  def _repr_markdown_(self): return '# head'\ndisplay(M())", "# head\n", nil},
			"nothing to show":    {"class N:\n  def _repr_png_(self): return None\n  def __repr__(self): return 'N'\ndisplay(N())", "N\n", nil},
			"a class":            {"class P:\n  def _repr_png_(self): return b'png'\ndisplay(P)", "<class '__main__.P'>\n", nil},
			"a last value":       {"class P:\n  def _repr_png_(self): return b'png'\nP()", "", []string{"picture-1.png png"}},
			"by import":          {"from mcp.runtime import display as d\nclass P:\n  def _repr_png_(self): return b'png'\nd(P())", "", []string{"picture-1.png png"}},
			"a name of the code": {"display = print\ndisplay('mine')", "mine\n", nil},
		} {
			out, shown := shownTo(t, py, false, tt.code)
			if out.stdout != tt.print || !slices.Equal(shown, tt.shown) || out.exit != 0 || out.result() != nil {
				t.Errorf("%s: printed %q, showed %q, exit %d, result %v: %s", name, out.stdout, shown, out.exit, out.result(), out.stderr)
			}
		}
	})
}

func TestDisplaySaysWhatItCannotDraw(t *testing.T) {
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		const broken = "class B:\n  def _repr_png_(self): raise OSError('no ink')\n  def __repr__(self): return 'B'\n"
		out, _ := shownTo(t, py, false, broken+"display(B())")
		if out.stdout != "B\n" || !strings.Contains(out.stderr, "display: this B cannot be drawn: OSError: no ink") {
			t.Errorf("stdout %q, stderr %q", out.stdout, out.stderr)
		}
		if out, _ := shownTo(t, py, false, broken+"B()"); out.result() != "B" || out.exit != 0 {
			t.Errorf("as the last value: %v: %s", out.result(), out.stderr)
		}
		// As text it would be all of its data.
		const ofPlotly = "class Figure:\n  def to_image(self, format): raise ValueError('no kaleido')\n  def _repr_mimebundle_(self): return {}\nFigure.__module__ = 'plotly.graph_objs'\n"
		for _, use := range []string{"display(Figure())", "Figure()"} {
			out, _ := shownTo(t, py, false, ofPlotly+use)
			const want = `display: this Figure cannot be drawn: ValueError: no kaleido; keep it with .write_html("/workspace/out/figure.html")`
			if out.stdout != "" || out.result() != nil || !strings.Contains(out.stderr, want) {
				t.Errorf("plotly, %s: stdout %q, result %v, stderr %q", use, out.stdout, out.result(), out.stderr)
			}
		}
		const picture = "class P:\n  def _repr_png_(self): return b'png'\n  def __repr__(self): return 'P'\n"
		if out, _ := shownTo(t, py, true, picture+"try: display(P())\nexcept Exception as e: print(e)"); out.stdout != "a run can display 0 pictures\n" {
			t.Errorf("refused: %q: %s", out.stdout, out.stderr)
		}
		if out, _ := shownTo(t, py, true, picture+"P()"); out.result() != "P" || out.exit != 0 {
			t.Errorf("refused as the last value: %v: %s", out.result(), out.stderr)
		}
	})
}

// TestDisplayShowsPicturesOfTools: a screenshot reaches the model as a picture, also
// in a list, in structured content, and beside it.
func TestDisplayShowsPicturesOfTools(t *testing.T) {
	image := func(data, kind string) string {
		return fmt.Sprintf(`{'type': 'image', 'data': '%s', 'mimeType': '%s'}`, base64.StdEncoding.EncodeToString([]byte(data)), kind)
	}
	const text = "{'type': 'text', 'text': 'see'}"
	png, jpg := image("png", "image/png"), image("jpg", "image/JPG; q=1")
	listed := fmt.Sprintf("['see', %s]", "<image/png, 3 bytes: .data, .save(path)>")
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		for name, tt := range map[string]struct {
			answer, code, print string
			result              any
			shown               []string
		}{
			"by itself":          {"'content': [" + png + "]", "display(answer)", "", nil, []string{"picture-1.png png"}},
			"of a list":          {"'content': [" + text + "," + png + "]", "display(answer[1])", "", nil, []string{"picture-1.png png"}},
			"a list":             {"'content': [" + text + "," + png + "]", "display(answer)", listed + "\n", nil, []string{"picture-1.png png"}},
			"as the last value":  {"'content': [" + jpg + "]", "answer", "", nil, []string{"picture-1.jpg jpg"}},
			"a list as the last": {"'content': [" + text + "," + png + "]", "answer", "", listed, []string{"picture-1.png png"}},
			"of the code's own":  {"'content': [" + png + "]", "{'a': (1, [answer])}", "", "{'a': (1, [<image/png, 3 bytes: .data, .save(path)>])}", []string{"picture-1.png png"}},
			"in and beside structured content": {
				"'content': [" + png + "], 'structuredContent': {'content': [" + png + "]}", "answer", "",
				"{'content': [<image/png, 3 bytes: .data, .save(path)>]}",
				[]string{"picture-1.png png"},
			},
			"beside a text": {"'content': [" + text + "," + jpg + "], 'structuredContent': {'out': 'see'}", "answer", "", "'see'", []string{"picture-1.jpg jpg"}},
			"a resource":    {"'content': [{'type': 'resource', 'resource': {'uri': 'x:', 'mimeType': 'image/gif', 'blob': 'Z2lm'}}]", "answer", "", nil, []string{"picture-1.gif gif"}},
			"an SVG":        {"'content': [" + image("<svg/>", "image/svg+xml") + "]", "answer", "", nil, []string{"picture-1.svg <svg/>"}},
			"of no format":  {"'content': [" + image("bmp", "image/bmp") + "]", "answer", "", "<image/bmp, 3 bytes: .data, .save(path)>", nil},
			"a sound":       {"'content': [{'type': 'audio', 'data': 'aGk=', 'mimeType': 'audio/wav'}]", "answer", "", "<audio/wav, 2 bytes: .data, .save(path)>", nil},
			"not base64":    {"'content': [" + text + ",{'type': 'image', 'data': '!', 'mimeType': 'image/png'}]", "len(answer); answer", "", "['see', <image/png, 0 bytes: .data, .save(path)>]", nil},
			"in a loop":     {"'content': [" + png + "]", "loop = [answer]\nloop.append(loop)\nloop", "", "[<image/png, 3 bytes: .data, .save(path)>, …]", []string{"picture-1.png png"}},
			"printed":       {"'content': [" + png + "]", "print(answer)", "<image/png, 3 bytes: .data, .save(path)>\n", nil, nil},
		} {
			out, shown := shownTo(t, py, false, "answer = await mcp_github.raw(answer={"+tt.answer+"})\n"+tt.code)
			if out.stdout != tt.print || !slices.Equal(shown, tt.shown) || out.exit != 0 || out.result() != tt.result {
				t.Errorf("%s: printed %q, showed %q, exit %d, result %v: %s", name, out.stdout, shown, out.exit, out.result(), out.stderr)
			}
		}
		out, _ := shownTo(t, py, true, "await mcp_github.raw(answer={'content': ["+text+","+png+"]})")
		if out.result() != listed || out.exit != 0 {
			t.Errorf("refused: %v: %s", out.result(), out.stderr)
		}
	})
}
