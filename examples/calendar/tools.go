package main

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

const (
	maxFile = 16 << 20
	maxDays = 366
)

type listEventsIn struct {
	From string `json:"from" jsonschema:"first day, YYYY-MM-DD"`
	To   string `json:"to,omitempty" jsonschema:"last day, included; the first day if left out"`
}

type listEventsOut struct {
	Events   []eventOut `json:"events"`
	Warnings []string   `json:"warnings,omitempty" jsonschema:"what in the file could not be read in full"`
}

type eventOut struct {
	Title    string `json:"title"`
	Start    string `json:"start" jsonschema:"RFC 3339 time, or YYYY-MM-DD for an all-day event"`
	End      string `json:"end" jsonschema:"RFC 3339 time, or YYYY-MM-DD: the day after the last"`
	AllDay   bool   `json:"all_day,omitempty"`
	Location string `json:"location,omitempty"`
}

func listEvents(path string, in listEventsIn) (listEventsOut, error) {
	out := listEventsOut{Events: []eventOut{}}
	cal, err := load(path)
	if err != nil {
		return out, err
	}
	from, err := parseDay("from", in.From, cal.zone)
	if err != nil {
		return out, err
	}
	last, err := parseDay("to", cmp.Or(in.To, in.From), cal.zone)
	if err != nil {
		return out, err
	}
	to := last.AddDate(0, 0, 1)
	if !from.Before(to) || to.After(from.AddDate(0, 0, maxDays)) {
		return out, fmt.Errorf("%q to %q is not a range of 1 to %d days", in.From, in.To, maxDays)
	}
	for _, o := range cal.between(from, to) {
		layout := time.RFC3339
		if o.allDay {
			layout = time.DateOnly
		}
		out.Events = append(out.Events, eventOut{
			Title:    o.title,
			Start:    o.start.In(cal.zone).Format(layout),
			End:      o.end.In(cal.zone).Format(layout),
			AllDay:   o.allDay,
			Location: o.location,
		})
	}
	out.Warnings = cal.warnings
	return out, nil
}

type freeSlotsIn struct {
	Date       string `json:"date" jsonschema:"the day, YYYY-MM-DD"`
	MinMinutes int    `json:"min_minutes,omitempty" jsonschema:"leave out shorter gaps; default 15"`
	DayStart   string `json:"day_start,omitempty" jsonschema:"start of the working day, HH:MM; default 09:00"`
	DayEnd     string `json:"day_end,omitempty" jsonschema:"end of the working day, HH:MM; default 17:00"`
}

type freeSlotsOut struct {
	Slots    []slotOut `json:"slots"`
	Warnings []string  `json:"warnings,omitempty" jsonschema:"what in the file could not be read in full"`
}

type slotOut struct {
	Start   string `json:"start" jsonschema:"RFC 3339 time"`
	End     string `json:"end" jsonschema:"RFC 3339 time"`
	Minutes int    `json:"minutes"`
}

func freeSlots(path string, in freeSlotsIn) (freeSlotsOut, error) {
	out := freeSlotsOut{Slots: []slotOut{}}
	cal, err := load(path)
	if err != nil {
		return out, err
	}
	day, err := parseDay("date", in.Date, cal.zone)
	if err != nil {
		return out, err
	}
	start, err := parseClock("day_start", cmp.Or(in.DayStart, "09:00"), day)
	if err != nil {
		return out, err
	}
	end, err := parseClock("day_end", cmp.Or(in.DayEnd, "17:00"), day)
	if err != nil {
		return out, err
	}
	if !start.Before(end) {
		return out, fmt.Errorf("day_start %s is not before day_end %s", in.DayStart, in.DayEnd)
	}
	shortest := time.Duration(cmp.Or(in.MinMinutes, 15)) * time.Minute
	if shortest <= 0 || shortest > 24*time.Hour {
		return out, fmt.Errorf("min_minutes %d is not between 1 and 1440", in.MinMinutes)
	}
	for _, gap := range gaps(cal.between(start, end), start, end) {
		if length := gap.end.Sub(gap.start); length >= shortest {
			out.Slots = append(out.Slots, slotOut{
				Start:   gap.start.Format(time.RFC3339),
				End:     gap.end.Format(time.RFC3339),
				Minutes: int(length / time.Minute),
			})
		}
	}
	out.Warnings = cal.warnings
	return out, nil
}

// span is a piece of time.
type span struct{ start, end time.Time }

// gaps returns what the busy ones of events, in order of their start, leave of
// the time from start to end.
func gaps(events []occurrence, start, end time.Time) []span {
	var free []span
	at := start
	for _, e := range events {
		if e.transparent {
			continue
		}
		if e.start.After(at) {
			free = append(free, span{at, e.start.In(at.Location())})
		}
		if e.end.After(at) {
			at = e.end.In(at.Location())
		}
	}
	if at.Before(end) {
		free = append(free, span{at, end})
	}
	return free
}

func load(path string) (*calendar, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readCalendar(f)
}

func parseDay(name, s string, zone *time.Location) (time.Time, error) {
	day, err := time.ParseInLocation(time.DateOnly, s, zone)
	if err != nil {
		return day, fmt.Errorf("%s %q is not a day such as 2026-11-24", name, s)
	}
	return day, nil
}

// parseClock returns the time of day s on the given day; 24:00 is its end.
func parseClock(name, s string, day time.Time) (time.Time, error) {
	if s == "24:00" {
		return day.AddDate(0, 0, 1), nil
	}
	clock, err := time.Parse("15:04", s)
	if err != nil {
		return day, fmt.Errorf("%s %q is not a time of day such as 09:00", name, s)
	}
	y, m, d := day.Date()
	return time.Date(y, m, d, clock.Hour(), clock.Minute(), 0, 0, day.Location()), nil
}
