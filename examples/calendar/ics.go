package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// calendar is what an iCalendar file (RFC 5545) says of events.
type calendar struct {
	zone     *time.Location // of floating times and dates
	events   []*event
	warnings []string
}

// event is one VEVENT.
type event struct {
	uid, title, location string
	span
	allDay      bool
	transparent bool // takes no time
	cancelled   bool
	rule        *rule
	except      map[int64]bool // starts, as Unix time, that the rule leaves out
	replaces    time.Time      // RECURRENCE-ID: the start this one stands in for
}

// property is one content line: NAME;PARAM=VALUE:VALUE.
type property struct {
	name   string
	params map[string]string
	value  string
}

// readCalendar reads the events of an iCalendar stream. An event that cannot
// be read is left out with a warning; what is not a calendar is an error.
func readCalendar(r io.Reader) (*calendar, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("calendar is larger than %d bytes", maxFile)
	}
	lines := unfold(text)
	if len(lines) == 0 || !strings.EqualFold(strings.TrimSpace(lines[0]), "BEGIN:VCALENDAR") {
		return nil, fmt.Errorf("file does not begin with BEGIN:VCALENDAR")
	}
	cal := &calendar{zone: time.Local}
	events := cal.components(lines)
	for _, props := range events {
		e, err := cal.event(props)
		if err != nil {
			cal.warn("leaving out an event: %v", err)
			continue
		}
		cal.events = append(cal.events, e)
	}
	cal.applyReplacements()
	return cal, nil
}

func (c *calendar) warn(format string, args ...any) {
	const most = 20
	if len(c.warnings) < most {
		c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
	}
}

// unfold joins the lines that RFC 5545 §3.1 folds: a line break before a space
// or a tab belongs to neither line.
func unfold(text []byte) []string {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	s := strings.ReplaceAll(string(text), "\r\n", "\n")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\n ", ""), "\n\t", "")
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// components returns the properties of each VEVENT and takes the zone of the
// calendar from its own. What stands in a component within an event, such as
// the DURATION of an alarm, is not the event's.
func (c *calendar) components(lines []string) [][]property {
	var events [][]property
	var open []string
	for _, line := range lines {
		p, ok := parseProperty(line)
		if !ok {
			c.warn("leaving out the line %.40q", line)
			continue
		}
		switch p.name {
		case "BEGIN":
			open = append(open, strings.ToUpper(p.value))
			if len(open) == 2 && open[1] == "VEVENT" {
				events = append(events, nil)
			}
		case "END":
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case "X-WR-TIMEZONE":
			if len(open) == 1 {
				c.zone = c.location(p.value)
			}
		default:
			if len(open) == 2 && open[1] == "VEVENT" {
				events[len(events)-1] = append(events[len(events)-1], p)
			}
		}
	}
	return events
}

func parseProperty(line string) (property, bool) {
	p := property{params: map[string]string{}}
	colon := indexUnquoted(line, ':')
	if colon < 0 {
		return p, false
	}
	head := line[:colon]
	p.value = line[colon+1:]
	for first := true; head != ""; first = false {
		part := head
		if i := indexUnquoted(head, ';'); i >= 0 {
			part, head = head[:i], head[i+1:]
		} else {
			head = ""
		}
		if first {
			p.name = strings.ToUpper(part)
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		p.params[strings.ToUpper(key)] = strings.Trim(value, `"`)
	}
	return p, p.name != ""
}

// indexUnquoted returns the first place of c outside double quotes.
func indexUnquoted(s string, c byte) int {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == c && !quoted:
			return i
		}
	}
	return -1
}

// event builds an event from its properties.
func (c *calendar) event(props []property) (*event, error) {
	e := &event{except: map[int64]bool{}}
	byName := map[string]property{}
	for _, p := range props {
		if p.name != "EXDATE" {
			byName[p.name] = p
			continue
		}
		for v := range strings.SplitSeq(p.value, ",") {
			t, _, err := c.time(property{params: p.params, value: v})
			if err != nil {
				return nil, err
			}
			e.except[t.Unix()] = true
		}
	}
	e.uid = byName["UID"].value
	e.title = unescape(byName["SUMMARY"].value)
	e.location = unescape(byName["LOCATION"].value)
	e.cancelled = strings.EqualFold(byName["STATUS"].value, "CANCELLED")
	e.transparent = strings.EqualFold(byName["TRANSP"].value, "TRANSPARENT")
	var err error
	if e.start, e.allDay, err = c.time(byName["DTSTART"]); err != nil {
		return nil, fmt.Errorf("%q: %w", e.title, err)
	}
	if e.end, err = c.endOf(e, byName); err != nil {
		return nil, fmt.Errorf("%q: %w", e.title, err)
	}
	if p, ok := byName["RECURRENCE-ID"]; ok {
		if e.replaces, _, err = c.time(p); err != nil {
			return nil, fmt.Errorf("%q: %w", e.title, err)
		}
	}
	if p, ok := byName["RRULE"]; ok {
		if e.rule, err = c.rule(p.value, e.start.Location()); err != nil {
			c.warn("%q: only its first date is known: %v", e.title, err)
		}
	}
	return e, nil
}

// endOf follows RFC 5545 §3.6.1: DTEND, else DURATION, else the day for an
// all-day event, else no length.
func (c *calendar) endOf(e *event, props map[string]property) (time.Time, error) {
	end := e.start
	if e.allDay {
		end = e.start.AddDate(0, 0, 1)
	}
	var err error
	if p, ok := props["DTEND"]; ok {
		end, _, err = c.time(p)
	} else if p, ok := props["DURATION"]; ok {
		end, err = addDuration(e.start, p.value)
	}
	if err == nil && end.Before(e.start) {
		err = fmt.Errorf("it ends before it starts")
	}
	return end, err
}

// applyReplacements takes the dates that another event with the same UID
// stands in for out of the recurring event, and then drops what is cancelled,
// which may be just such a date.
func (c *calendar) applyReplacements() {
	byUID := map[string]*event{}
	for _, e := range c.events {
		if e.replaces.IsZero() {
			byUID[e.uid] = e
		}
	}
	for _, e := range c.events {
		if master := byUID[e.uid]; master != nil && !e.replaces.IsZero() {
			master.except[e.replaces.Unix()] = true
		}
	}
	c.events = slices.DeleteFunc(c.events, func(e *event) bool { return e.cancelled })
}

// unescape undoes the escapes of TEXT values (RFC 5545 §3.3.11).
func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\;`, ";", `\,`, ",", `\n`, "\n", `\N`, "\n").Replace(s)
}
