package search

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
func actionOf(stems []string) action {
	for _, s := range stems {
		if a := actionVerbs[s]; a != unknownAction {
			return a
		}
	}
	return unknownAction
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
