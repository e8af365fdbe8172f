package page

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// policy is the page of the policy: how it was understood, and what it would decide of the calls of the
// last runs.
func (s *Server) policy(w http.ResponseWriter, r *http.Request) {
	s.judging.Lock() // one page after another
	defer s.judging.Unlock()
	body := struct {
		rules.Tally
		File    rules.File
		Wrong   string // why the file cannot be used
		Problem string
		Default bool // there is a section about every server
		Strict  bool
		Network int // rules about it
	}{File: s.o.Policy()}
	if err := body.File.Policy.Err(); err != nil {
		body.Wrong = err.Error()
	} else {
		body.Strict = body.File.Policy.StrictApprovals()
	}
	if c := body.File.Policy.Contents(); c != nil {
		body.Network = c.NetworkRules
	}
	var err error
	if body.Tally, err = body.File.Count(r.Context(), s.o.Record, s.o.Shown()); err != nil {
		body.Problem = "The record cannot be read: " + err.Error()
	}
	for _, sec := range body.Sections {
		body.Default = body.Default || sec.Name == "[default]"
	}
	s.show(w, http.StatusOK, frame{Title: "Policy", Page: "policy", Body: body})
}

// rule is the page of the rules that are offered for one call.
func (s *Server) rule(w http.ResponseWriter, r *http.Request) {
	if why := s.o.ReadsOnly(); why != "" {
		s.fail(w, http.StatusForbidden, why)
		return
	}
	run := r.URL.Query().Get("run")
	number, err := strconv.Atoi(r.URL.Query().Get("call"))
	if err != nil {
		s.fail(w, http.StatusNotFound, rules.ErrNoCall.Error()+".")
		return
	}
	s.judging.Lock()
	defer s.judging.Unlock()
	file := s.o.Policy()
	if err := file.Policy.Err(); err != nil {
		s.fail(w, http.StatusConflict, "No rule can be offered until the policy is fixed: "+err.Error()+".")
		return
	}
	offers, err := file.ForCall(r.Context(), s.o.Record, s.o.Shown(), run, number)
	if errors.Is(err, rules.ErrNoCall) {
		s.fail(w, http.StatusNotFound, err.Error()+".")
		return
	} else if err != nil {
		s.noRun(w, err)
		return
	}
	body := struct {
		*rules.Offers
		File rules.File
		Run  history.Run
	}{offers, file, history.Run{ID: offers.Call.Run}}
	s.show(w, http.StatusOK, frame{Title: "A rule of run " + timeline.ShortID(body.Run.ID), Page: "rule", Body: body})
}
