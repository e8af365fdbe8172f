package page

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

//go:embed templates static
var files embed.FS

// pages are the templates, by the names of their files.
type pages map[string]*template.Template

// readPages reads the templates. That takes a millisecond, which only ui pays.
func readPages() (pages, error) {
	all := pages{}
	for _, name := range []string{"waiting", "runs", "run", "compare", "servers", "server", "policy", "rule", "sandbox", "problem"} {
		t, err := template.New("frame.html").Funcs(template.FuncMap{
			"began": func(t time.Time) string { return timeline.Began(t, time.Now()) }, "from": timeline.From, "status": timeline.StatusOf, "shortid": timeline.ShortID,
			"took": timeline.Took, "tone": tone, "decided": decided, "sentence": sentence, "picture": isPicture, "size": text.Size, "plural": text.Plural,
			"standing": standing, "serverpath": serverPath, "heading": heading, "lines": lines, "difftone": diffTone, "day": day,
		}).ParseFS(files, "templates/frame.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// sentence writes a title as in a sentence.
func sentence(title string) string { return title[:1] + strings.ToLower(title[1:]) }

// tone is how the status of a run or the outcome of a call is colored.
func tone(status string) string {
	switch {
	case slices.Contains([]string{"success", "ok", "running", timeline.Planned}, status):
		return "good"
	case status == timeline.Waiting, status == timeline.UnderWay:
		return "wait"
	}
	return "bad"
}

// standing is how the status of a server or a check is colored.
func standing(status string) string {
	switch status {
	case "ok", "ready", "running":
		return "good"
	case "degraded", "needs_value", "untrusted":
		return "wait"
	case "fatal", "failed":
		return "bad"
	}
	return "meta"
}

// lines splits a text into its lines.
func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

// diffTone is how a line of a diff is colored.
func diffTone(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return "good"
	case strings.HasPrefix(line, "-"):
		return "bad"
	}
	return ""
}

func day(t time.Time) string { return t.Local().Format(time.DateOnly) }

// decided is how a decision of the policy is colored.
func decided(d rules.Decision) string {
	return map[rules.Decision]string{rules.Allowed: "good", rules.Asked: "wait", rules.Denied: "bad"}[d]
}

// A frame is what all pages have, with the Body of one.
type frame struct {
	Title string
	Page  string // the name of its template
	Reads string // why nothing can be done but to read
	// Heading says what has failed, in place of what the page has else.
	Heading string
	Body    any
}

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, status int, f frame) {
	all, err := s.pages()
	var b bytes.Buffer
	if err == nil {
		f.Reads = s.o.ReadsOnly()
		err = all[f.Page].Execute(&b, f)
	}
	if err != nil {
		s.o.Log.Error("making a page", "page", f.Page, "error", err) // whose text may name files
		http.Error(w, "the page could not be made; the log of toolcell ui says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// Nothing of what others wrote hides in it or turns it around, in whatever field it came.
	_, _ = io.WriteString(w, console.PlainText(b.String()))
}

// fail answers with a page that says what is wrong.
func (s *Server) fail(w http.ResponseWriter, status int, problem string) {
	s.show(w, status, frame{Title: failed(status), Page: "problem", Body: problem})
}

// failed says in plain words what the status of an answer means.
func failed(status int) string {
	switch {
	case status == http.StatusNotFound:
		return "Not found"
	case status == http.StatusConflict, status == http.StatusServiceUnavailable:
		return "It cannot be done now"
	case status >= http.StatusInternalServerError:
		return "Something went wrong"
	}
	return "It was not done"
}

// static answers with a file that pages use.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	types := map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
	name := r.PathValue("name")
	data, err := files.ReadFile("static/" + name)
	if err != nil || types[name] == "" {
		s.fail(w, http.StatusNotFound, "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", types[name])
	_, _ = w.Write(data)
}
