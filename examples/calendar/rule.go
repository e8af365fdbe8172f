package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSteps bounds the expansion of one rule: a daily event of 270 years.
const maxSteps = 100_000

// rule is the part of RRULE (RFC 5545 §3.3.10) that is understood: daily and
// weekly, with INTERVAL, COUNT, UNTIL, BYDAY and WKST.
type rule struct {
	weekly    bool
	interval  int
	count     int       // 0: no end
	until     time.Time // zero: no end; included
	days      [7]bool   // BYDAY, by time.Weekday
	byDay     bool
	weekStart time.Weekday
}

// weekdays are in the order of time.Weekday.
var weekdays = []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}

func parseWeekday(s string) (time.Weekday, error) {
	for i, name := range weekdays {
		if s == name {
			return time.Weekday(i), nil
		}
	}
	return 0, fmt.Errorf("%.20q is no day of the week", s)
}

// rule reads an RRULE value. It refuses any part it does not know, since
// leaving one out would name wrong dates.
func (c *calendar) rule(s string, zone *time.Location) (*rule, error) {
	r := &rule{interval: 1, weekStart: time.Monday}
	freq := ""
	for part := range strings.SplitSeq(strings.ToUpper(strings.TrimSpace(s)), ";") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "FREQ":
			freq, r.weekly = value, value == "WEEKLY"
		case "INTERVAL":
			r.interval, err = positive(value)
		case "COUNT":
			r.count, err = positive(value)
		case "UNTIL":
			r.until, err = c.until(value, zone)
		case "WKST":
			r.weekStart, err = parseWeekday(value)
		case "BYDAY":
			r.byDay = true
			for day := range strings.SplitSeq(value, ",") {
				var d time.Weekday
				if d, err = parseWeekday(day); err != nil {
					break
				}
				r.days[d] = true
			}
		default:
			err = fmt.Errorf("the rule part %.40q is not understood", part)
		}
		if err != nil {
			return nil, err
		}
	}
	if freq != "DAILY" && freq != "WEEKLY" {
		return nil, fmt.Errorf("only daily and weekly rules are understood, not %.20q", freq)
	}
	return r, nil
}

func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, fmt.Errorf("%.20q is not a number from 1 to 1000000", s)
	}
	return n, nil
}

// until reads the last moment of a rule; a date means all of that day.
func (c *calendar) until(s string, zone *time.Location) (time.Time, error) {
	t, isDate, err := c.time(property{value: s})
	if err == nil && isDate {
		y, m, d := t.Date()
		t = time.Date(y, m, d+1, 0, 0, -1, 0, zone)
	}
	return t, err
}

// spans returns when e takes place, up to the time limit.
func (e *event) spans(limit time.Time) []span {
	if e.rule == nil {
		return []span{e.span}
	}
	var spans []span
	made := 0
	for day := range maxSteps {
		start := addDays(e.start, day)
		if !start.Before(limit) || !e.rule.until.IsZero() && start.After(e.rule.until) {
			break
		}
		if !e.rule.matches(e.start, day) {
			continue
		}
		if !e.except[start.Unix()] {
			spans = append(spans, span{start, e.endFrom(start, day)})
		}
		if made++; made == e.rule.count {
			break
		}
	}
	return spans
}

// matches reports whether the rule names the given number of days after first.
func (r *rule) matches(first time.Time, day int) bool {
	weekday := (first.Weekday() + time.Weekday(day%7)) % 7
	if !r.weekly {
		return day%r.interval == 0 && (!r.byDay || r.days[weekday])
	}
	// Weeks are counted from the start of the one that first lies in.
	intoWeek := int(first.Weekday()-r.weekStart+7) % 7
	if (intoWeek+day)/7%r.interval != 0 {
		return false
	}
	if !r.byDay {
		return weekday == first.Weekday()
	}
	return r.days[weekday]
}

// endFrom returns the end of the occurrence at start: all-day events keep
// their number of days where the clock changes, others their length.
func (e *event) endFrom(start time.Time, day int) time.Time {
	if e.allDay {
		return addDays(e.end, day)
	}
	return start.Add(e.end.Sub(e.start))
}

// addDays keeps the time of day where the clock changes.
func addDays(t time.Time, n int) time.Time { return t.AddDate(0, 0, n) }

// occurrence is an event on one date.
type occurrence struct {
	*event
	span
}

// between returns what takes place between from and to, in order of start.
func (c *calendar) between(from, to time.Time) []occurrence {
	var found []occurrence
	for _, e := range c.events {
		for _, s := range e.spans(to) {
			// An event without length counts at the moment it starts.
			if s.start.Before(to) && (s.end.After(from) || s.start.Equal(s.end) && !s.start.Before(from)) {
				found = append(found, occurrence{e, s})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b occurrence) int { return a.start.Compare(b.start) })
	return found
}
