package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// task is one line of a todo.txt file.
type task struct {
	Line      int               `json:"line"`
	Title     string            `json:"title" jsonschema:"the text without projects, contexts and tags"`
	Done      bool              `json:"done"`
	Priority  string            `json:"priority,omitempty" jsonschema:"A (first) to Z"`
	Due       string            `json:"due,omitempty" jsonschema:"YYYY-MM-DD"`
	Minutes   int               `json:"minutes,omitempty" jsonschema:"estimate"`
	Projects  []string          `json:"projects,omitempty"`
	Contexts  []string          `json:"contexts,omitempty"`
	Created   string            `json:"created,omitempty" jsonschema:"YYYY-MM-DD"`
	Completed string            `json:"completed,omitempty" jsonschema:"YYYY-MM-DD"`
	Tags      map[string]string `json:"tags,omitempty" jsonschema:"further key:value pairs"`
}

// parseTask reads a line: "x", dates and "(A)" at its front, then words.
func parseTask(number int, line string) task {
	t := task{Line: number}
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "x "); ok {
		t.Done = true
		t.Completed, line = cutDate(rest)
	}
	t.Priority, line = cutPriority(line)
	t.Created, line = cutDate(line)
	var title []string
	for word := range strings.FieldsSeq(line) {
		if !t.take(word) {
			title = append(title, word)
		}
	}
	t.Title = strings.Join(title, " ")
	return t
}

var tagForm = regexp.MustCompile(`^([A-Za-z][\w-]*):([^:\s/][^:\s]*)$`)

// take reports whether word says something about the task besides its title.
func (t *task) take(word string) bool {
	switch name := word[1:]; {
	case word[0] == '+' && name != "":
		t.Projects = append(t.Projects, name)
		return true
	case word[0] == '@' && name != "":
		t.Contexts = append(t.Contexts, name)
		return true
	}
	m := tagForm.FindStringSubmatch(word)
	if m == nil {
		return false
	}
	switch key, value := m[1], m[2]; {
	case key == "due" && isDate(value):
		t.Due = value
	case key == "min" && positive(value) > 0:
		t.Minutes = positive(value)
	case key == "pri" && t.Done && t.Priority == "":
		// Completing a task moves its priority here, so that the line sorts last.
		t.Priority = value
	default:
		if t.Tags == nil {
			t.Tags = map[string]string{}
		}
		t.Tags[key] = value
	}
	return true
}

func positive(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n > 1_000_000 {
		return 0
	}
	return max(n, 0)
}

// completed returns the line of a task that was finished today.
func completed(line, today string) string {
	priority, rest := cutPriority(strings.TrimSpace(line))
	line = "x " + today + " " + rest
	if priority != "" {
		line += " pri:" + priority
	}
	return line
}

// added returns the line of a task that was made today, unless it names a day
// itself.
func added(text, today string) string {
	priority, rest := cutPriority(text)
	if created, _ := cutDate(rest); created == "" {
		rest = today + " " + rest
	}
	if priority != "" {
		rest = "(" + priority + ") " + rest
	}
	return rest
}

// cutPriority takes a leading "(A) " off s.
func cutPriority(s string) (priority, rest string) {
	if len(s) > 4 && s[0] == '(' && s[1] >= 'A' && s[1] <= 'Z' && s[2:4] == ") " {
		return s[1:2], strings.TrimLeft(s[4:], " ")
	}
	return "", s
}

// cutDate takes a leading "2026-11-24 " off s.
func cutDate(s string) (date, rest string) {
	if word, rest, ok := strings.Cut(s, " "); ok && isDate(word) {
		return word, strings.TrimLeft(rest, " ")
	}
	return "", s
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// wanted reports whether t passes the filters of list_tasks.
func (t *task) wanted(in listTasksIn) bool {
	has := func(names []string, name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	}
	project, place := strings.TrimPrefix(in.Project, "+"), strings.TrimPrefix(in.Context, "@")
	return (project == "" || has(t.Projects, project)) &&
		(place == "" || has(t.Contexts, place)) &&
		(!in.OpenOnly || !t.Done)
}
