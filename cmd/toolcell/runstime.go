package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// errWhen says which times there are.
var errWhen = errors.New("give a time ago such as 90m, 2h or 3d, today, yesterday, a day such as 2026-11-27, 14:30, or RFC 3339")

// parseWhen reads a time of the past as a person writes it: the moment, or the beginning of a day and
// of the next. Days are local.
func parseWhen(s string, now time.Time) (from, to time.Time, err error) {
	now = now.Local()
	s = strings.TrimSpace(s)
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	day := func(t time.Time) (time.Time, time.Time, error) { return t, t.AddDate(0, 0, 1), nil }
	switch strings.ToLower(s) {
	case "now":
		return now, now, nil
	case "today":
		return day(today)
	case "yesterday":
		return day(today.AddDate(0, 0, -1))
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		return day(t)
	}
	if ago, ok := parseAgo(s); ok {
		return now.Add(-ago), now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, t, nil
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			return t, t, nil
		}
	}
	return from, to, fmt.Errorf("%q is not a time: %w", s, errWhen)
}

// parseAgo reads how long ago something was. Days and weeks are of 24 hours.
func parseAgo(s string) (time.Duration, bool) {
	for unit, hours := range map[string]float64{"d": 24, "w": 7 * 24} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			return time.Duration(n * hours * float64(time.Hour)), err == nil && n >= 0 && n < 1e5
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}
