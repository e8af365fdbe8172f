package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on a list of runs.
const (
	pageOfRuns = 50
	maxRuns    = 1000
	atOnce     = 200             // runs whose code is read together, to search in it
	searchTime = 5 * time.Second // for a search in all of the record
)

// A query says which runs are listed. Its fields are those of the form.
type query struct {
	Q                    string // a text in the code, or what the run is called
	Client, Status, Tool string
	Writes               bool
	Since, Until         string // days
	N                    int

	filter history.Filter
}

// readQuery reads the form of a list.
func readQuery(form url.Values) (q query, err error) {
	q = query{
		Q: text.Clip(form.Get("q"), 200), Client: form.Get("client"), Status: form.Get("status"), Tool: form.Get("tool"), Writes: form.Get("writes") != "",
		Since: form.Get("since"), Until: form.Get("until"), N: pageOfRuns,
	}
	if n, err := strconv.Atoi(form.Get("n")); err == nil && n > 0 {
		q.N = min(n, maxRuns)
	}
	q.filter = history.Filter{Client: q.Client, Status: q.Status, Tool: q.Tool, Writes: q.Writes}
	day := func(name, value string, next int) (time.Time, error) {
		if value == "" {
			return time.Time{}, nil
		}
		at, err := time.ParseInLocation(time.DateOnly, value, time.Local)
		if err != nil {
			return at, fmt.Errorf("%s is a day such as 2026-11-28, not %.40q", name, value)
		}
		return at.AddDate(0, 0, next), nil
	}
	var errs [2]error
	q.filter.From, errs[0] = day("since", q.Since, 0)
	q.filter.To, errs[1] = day("until", q.Until, 1)
	return q, errors.Join(errs[:]...)
}

// more returns the address of a list of twice as many runs.
func (q query) More() string {
	v := url.Values{"n": {strconv.Itoa(min(2*q.N, maxRuns))}}
	for name, value := range map[string]string{"q": q.Q, "client": q.Client, "status": q.Status, "tool": q.Tool, "since": q.Since, "until": q.Until} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Writes {
		v.Set("writes", "1")
	}
	return "/runs?" + v.Encode()
}

// filtered reports whether some runs are left out.
func (q query) filtered() bool {
	return q.Q != "" || q.Client != "" || q.Status != "" || q.Tool != "" || q.Writes || q.Since != "" || q.Until != ""
}

// A row is a run in a list.
type row struct {
	history.Run
	Code string // its first line that says something
}

// newest returns the newest runs that a query is of, and whether there are more.
func (s *Server) newest(q query) (rows []row, more bool, err error) {
	shown := s.o.Shown()
	until := time.Now().Add(searchTime)
	var some []history.Run
	flush := func() error {
		codes, err := s.o.Record.Codes(some)
		for _, r := range some {
			code := codes[r.ID].Value
			hidden := shown.HideAll || shown.Hide != nil && r.Touches(shown.Hide)
			if hidden {
				code = ""
			}
			if q.Q != "" && !matches(r, code, q.Q) {
				continue
			}
			line := timeline.FirstLine(r, code)
			if hidden {
				line = "(not shown: it could use a private server)"
			}
			rows = append(rows, row{r, line})
		}
		some = some[:0]
		return err
	}
	read := atOnce
	if q.Q == "" {
		read = q.N + 1
	}
	for r, err := range s.o.Record.Runs(q.filter) {
		if err != nil {
			return rows, false, err
		}
		if some = append(some, r); len(some) < read {
			continue
		}
		if err := flush(); err != nil {
			return rows, false, err
		}
		if len(rows) > q.N || time.Now().After(until) {
			break
		}
	}
	if err := flush(); err != nil {
		return rows, false, err
	}
	more = len(rows) > q.N || time.Now().After(until)
	return rows[:min(len(rows), q.N)], more, nil
}

// matches reports whether a text is in what is listed of a run, or in its code, in any case.
func matches(r history.Run, code, wanted string) bool {
	wanted = strings.ToLower(wanted)
	for _, in := range append([]string{r.ID, r.Client.Name, r.Session, r.Status, code}, r.Tools...) {
		if strings.Contains(strings.ToLower(in), wanted) {
			return true
		}
	}
	return false
}

// runs is the page of the list.
func (s *Server) runs(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Query   query
		Runs    []row
		More    bool
		Problem string
		Notes   []string
		None    string // why there are no runs
	}
	var err error
	if body.Query, err = readQuery(r.URL.Query()); err == nil {
		body.Runs, body.More, err = s.newest(body.Query)
	}
	if err != nil {
		body.Problem = err.Error()
	}
	body.Notes, body.None = s.listNotes(body.Runs), s.noneListed(body.Query)
	s.show(w, http.StatusOK, frame{Title: "Runs", Page: "runs", Body: body})
}

// A shownRun is a run on its page.
type shownRun struct {
	timeline.View
	Run     history.Run
	Command string // that runs the code again, "" if not all of it is known
	Live    bool
	Now     *running // while it goes on, if that is known
}

// Prints reports whether what the run printed is on record, and shown.
func (r shownRun) Prints() bool {
	return slices.ContainsFunc(r.Blocks, func(b timeline.Block) bool { return len(b.Lines) > 0 })
}

// find returns a run by its ID, or the beginning of one.
func (s *Server) find(id string) (shown shownRun, err error) {
	entries, err := s.o.Record.Show(id)
	if err != nil {
		return shown, err
	}
	if shown.Run, err = s.o.Record.RunOf(entries); err != nil {
		return shown, err
	}
	t := timeline.New(shown.Run, entries)
	shown.View = t.View(s.o.Shown())
	shown.Notes = append(shown.Notes, s.newerFiles(entries)...)
	shown.Live = shown.Run.Status == history.StatusRunning || shown.Run.Status == history.StatusWaiting
	shown.Command = command(t, shown.View)
	return shown, nil
}

// command returns what is typed to run the code again.
func command(t *timeline.Timeline, v timeline.View) string {
	if v.CodeExact == "" {
		return ""
	}
	c := []string{"toolcell exec"}
	for _, granted := range slices.Concat(t.Start.Grants.Servers, t.Start.Grants.Hosts) {
		c = append(c, "--server "+text.ShellWord(granted))
	}
	if t.Start.Plan {
		c = append(c, "--plan")
	}
	code := "'" + strings.ReplaceAll(strings.TrimSpace(v.CodeExact), "'", `'\''`) + "'" // with its lines
	return strings.Join(append(c, "-c "+code), " ")
}

// run is the page of one run.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	shown, err := s.find(r.PathValue("id"))
	if err != nil {
		s.noRun(w, err)
		return
	}
	if shown.Live {
		shown.Now = s.runningNow(shown.Run.ID)
	}
	if values := s.o.Shown(); shown.Now != nil && shown.Now.Private && (values.HideAll || values.Hide != nil) {
		shown.Hidden = true
	}
	s.show(w, http.StatusOK, frame{Title: "Run " + timeline.ShortID(shown.Run.ID), Page: "run", Body: shown})
}

func (s *Server) noRun(w http.ResponseWriter, err error) {
	if _, ambiguous := errors.AsType[*history.AmbiguousError](err); ambiguous || errors.Is(err, history.ErrNoRun) {
		s.fail(w, http.StatusNotFound, s.missing(err))
		return
	}
	s.o.Log.Error("reading a run", "error", err)
	s.fail(w, http.StatusInternalServerError, "The record cannot be read: "+err.Error()+".")
}

// compare is the page of two runs: what differs of them, of their code and of their calls.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	a, err := s.find(r.URL.Query().Get("a"))
	if err != nil {
		s.noRun(w, err)
		return
	}
	b, err := s.find(r.URL.Query().Get("b"))
	if err != nil {
		s.noRun(w, err)
		return
	}
	body := struct {
		A, B        shownRun
		Facts       [][3]string
		Code, Calls []string
		More        bool // calls than are compared
	}{A: a, B: b, Facts: differing(a.Facts, b.Facts), Code: diff(codeText(a.View), codeText(b.View)), Calls: diff(callsText(a.View), callsText(b.View)), More: a.More > 0 || b.More > 0}
	s.show(w, http.StatusOK, frame{Title: "Compare", Page: "compare", Body: body})
}

// differing returns the facts that are not the same: the name, and what each says.
func differing(a, b []timeline.Fact) (all [][3]string) {
	of := func(facts []timeline.Fact, name string) string {
		i := slices.IndexFunc(facts, func(f timeline.Fact) bool { return f.Name == name })
		if i < 0 {
			return ""
		}
		return facts[i].What
	}
	seen := map[string]bool{}
	for _, f := range slices.Concat(a, b) {
		if x, y := of(a, f.Name), of(b, f.Name); !seen[f.Name] && x != y {
			all = append(all, [3]string{f.Name, x, y})
		}
		seen[f.Name] = true
	}
	return all
}

func codeText(v timeline.View) string {
	var b strings.Builder
	for _, l := range v.Code {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// callsText is a line for each call, without its times.
func callsText(v timeline.View) string {
	var b strings.Builder
	for _, m := range v.Moments {
		if m.Call != nil {
			arguments := ""
			if len(m.Below) > 0 {
				arguments = console.OneLine(m.Below[0], maxName)
			}
			fmt.Fprintf(&b, "%s %s: %s\n", m.Call.Name(), arguments, m.Call.Outcome())
		}
	}
	if v.More > 0 {
		fmt.Fprintf(&b, "%d more, which are not compared\n", v.More)
	}
	return b.String()
}

// maxName bounds the arguments of a call in a comparison, in columns.
const maxName = 200

// diff returns the lines of a unified diff, without its head; none if the texts are the same.
func diff(a, b string) []string {
	lines := strings.Split(strings.TrimSuffix(udiff.Unified("a", "b", a, b), "\n"), "\n")
	if len(lines) < 3 {
		return nil
	}
	return lines[2:]
}
