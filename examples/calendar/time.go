package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// time reads a DATE or DATE-TIME value: of a day, in UTC, in the zone that
// TZID names, or floating, which means the calendar's own zone.
func (c *calendar) time(p property) (t time.Time, isDate bool, err error) {
	zone := c.zone
	if id := p.params["TZID"]; id != "" {
		zone = c.location(id)
	}
	value := strings.TrimSpace(p.value)
	layout := "20060102T150405"
	switch {
	case len(value) == len("20060102"):
		layout, isDate = "20060102", true
	case strings.HasSuffix(value, "Z"):
		layout, zone = layout+"Z", time.UTC
	}
	t, err = time.ParseInLocation(layout, value, zone)
	if err != nil {
		return t, isDate, fmt.Errorf("%.40q is not a time", p.value)
	}
	return t, isDate, nil
}

// location finds a zone of the IANA database. Some programs write a path
// before the name, such as /freeassociation.sourceforge.net/Europe/Berlin.
func (c *calendar) location(id string) *time.Location {
	name := strings.Trim(id, "/")
	for name != "" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
		_, name, _ = strings.Cut(name, "/")
	}
	c.warn("time zone %.60q is not known: its times are read as %s", id, c.zone)
	return c.zone
}

var durationForm = regexp.MustCompile(`^([+-]?)P(?:(\d{1,4})W|(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?)?)$`)

// addDuration adds an RFC 5545 duration. Its days and weeks are nominal: they
// keep the time of day where the clock changes.
func addDuration(t time.Time, s string) (time.Time, error) {
	m := durationForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || strings.HasSuffix(m[0], "P") || strings.HasSuffix(m[0], "T") {
		return t, fmt.Errorf("%.40q is not a duration", s)
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(m[i]) // digits or nothing
		if m[1] == "-" {
			return -v
		}
		return v
	}
	t = t.AddDate(0, 0, 7*n(2)+n(3))
	return t.Add(time.Duration(n(4))*time.Hour + time.Duration(n(5))*time.Minute + time.Duration(n(6))*time.Second), nil
}
