package search

import "slices"

// An action is the kind of thing a tool does, by the first verb in its name. A
// query about removing something does not want a tool that creates it.
type action uint8

const (
	unknownAction action = iota
	createAction
	readAction
	searchAction
	updateAction
	deleteAction
	sendAction
	runAction
	stopAction
	actions // how many there are
)

var actionVerbs = stemsOfActions(map[action][]string{
	createAction: {"create", "add", "new", "insert", "make", "generate", "upload", "register", "init", "append", "write"},
	readAction:   {"get", "read", "retrieve", "fetch", "show", "view", "describe", "inspect", "download", "status", "info", "list", "all", "browse"},
	searchAction: {"search", "find", "query", "lookup", "explore"},
	updateAction: {"update", "edit", "modify", "set", "change", "patch", "rename", "move", "put", "toggle", "assign"},
	deleteAction: {"delete", "remove", "destroy", "drop", "purge", "clear", "uninstall"},
	sendAction:   {"send", "post", "push", "publish", "reply", "broadcast", "forward", "notify"},
	runAction:    {"run", "execute", "start", "trigger", "launch", "invoke", "deploy", "restart", "resume", "play"},
	stopAction:   {"stop", "cancel", "kill", "terminate", "pause", "disable", "close"},
})

func stemsOfActions(verbs map[action][]string) map[string]action {
	all := map[string]action{}
	for a, list := range verbs {
		for _, v := range list {
			all[stem(v)] = a
		}
	}
	return all
}

// actionOf returns the action of the first verb among stems.
func actionOf(stems []string) action { return actionVerbs[verbOf(stems)] }

// verbOf returns the first verb among stems, or "".
func verbOf(stems []string) string {
	for _, s := range stems {
		if actionVerbs[s] != unknownAction {
			return s
		}
	}
	return ""
}

// raiseVerb puts the tools that do an act first if that is all the query asks for:
// those that call it so, then those that have another word for it. It reports
// whether there are any.
func (ix *Index) raiseVerb(q question, scores []float32) bool {
	verb := ""
	for i, s := range q.stems {
		if !stopWords[q.words[i]] {
			verb = s
		}
	}
	act := actionVerbs[verb]
	if q.contentWords != 1 || act == unknownAction || len(scores) == 0 {
		return false
	}
	above, any := slices.Max(scores)+1, false
	for doc, v := range ix.verbs {
		switch {
		case v == verb:
			scores[doc] += 2 * above
		case actionVerbs[v] == act:
			scores[doc] += above
		default:
			continue
		}
		any = true
	}
	return any
}

// actionCounts is how much the right action raises a score, at most, and the
// wrong one lowers it.
const actionCounts = 0.15

// weighActions raises the scores of tools that do what the query asks for, and
// lowers those of tools that do something else. What it asks for is taken from its
// own verb and from those of the tools for its needs.
func (ix *Index) weighActions(q question, needs []match, scores []float32) {
	var wanted [actions]float32
	wanted[actionOf(q.stems)]++
	for _, n := range needs {
		names := theUtterances().answers[n.need]
		for _, name := range names {
			wanted[actionOf(name)] += n.counts / float32(len(names))
		}
	}
	wanted[unknownAction] = 0
	var sum float32
	for _, w := range wanted {
		sum += w
	}
	if sum == 0 {
		return
	}
	for doc, a := range ix.actions {
		if a != unknownAction {
			scores[doc] *= 1 + actionCounts*(2*wanted[a]/sum-1)
		}
	}
}
