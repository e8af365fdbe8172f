package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// read returns the calendar with the given lines within each of its events.
func read(t *testing.T, events ...string) *calendar {
	t.Helper()
	lines := []string{"BEGIN:VCALENDAR", "X-WR-TIMEZONE:Europe/Berlin"}
	for _, e := range events {
		lines = append(lines, "BEGIN:VEVENT", strings.ReplaceAll(e, "\n", "\r\n"), "END:VEVENT")
	}
	cal, err := readCalendar(strings.NewReader(strings.Join(append(lines, "END:VCALENDAR"), "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	return cal
}

// dates lists what the calendar has in 2026, as month-day and time in Berlin.
func dates(cal *calendar) []string {
	var all []string
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, cal.zone)
	for _, o := range cal.between(from, from.AddDate(1, 0, 0)) {
		all = append(all, o.start.In(cal.zone).Format("01-02 15:04")+"+"+o.end.Sub(o.start).String())
	}
	return all
}

func TestTimesAndLengths(t *testing.T) {
	for _, c := range []struct{ name, event, want string }{
		{"with zone", "DTSTART;TZID=America/New_York:20260302T090000\nDTEND;TZID=America/New_York:20260302T100000", "03-02 15:00+1h0m0s"},
		{"quoted zone", "DTSTART;X-A=\"a:b;c\";TZID=\"Europe/London\":20260302T090000\nDURATION:PT1H30M", "03-02 10:00+1h30m0s"},
		{"zone with a path", "DTSTART;TZID=/freeassociation.sourceforge.net/Europe/London:20260302T090000", "03-02 10:00+0s"},
		{"UTC", "DTSTART:20260702T090000Z\nDURATION:PT15M", "07-02 11:00+15m0s"},
		{"floating", "DTSTART:20260702T090000\nDTEND:20260702T093000", "07-02 09:00+30m0s"},
		{"day", "DTSTART;VALUE=DATE:20260702", "07-02 00:00+24h0m0s"},
		{"days", "DTSTART;VALUE=DATE:20260702\nDURATION:P3D", "07-02 00:00+72h0m0s"},
		{"day of 23 hours", "DTSTART;VALUE=DATE:20260329", "03-29 00:00+23h0m0s"},
		{"weeks", "DTSTART:20260702T090000\nDURATION:P1W", "07-02 09:00+168h0m0s"},
		{"lower case", "dtstart:20260702T090000\nduration:PT1M", "07-02 09:00+1m0s"},
		{"folded", "DTSTA\n RT:2026070\n\t2T090000", "07-02 09:00+0s"},
		{"length of an alarm", "DTSTART:20260702T090000\nDURATION:PT1H\nBEGIN:VALARM\nDURATION:PT5M\nEND:VALARM", "07-02 09:00+1h0m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cal := read(t, c.event)
			if got := dates(cal); !slices.Equal(got, []string{c.want}) || len(cal.warnings) > 0 {
				t.Errorf("got %q, warnings %q, want %q", got, cal.warnings, c.want)
			}
		})
	}
}

func TestRecurringEvents(t *testing.T) {
	const monday = "DTSTART;TZID=Europe/Berlin:20260302T090000\nDURATION:PT1H\n"
	for _, c := range []struct{ name, event, want string }{
		{"daily count", monday + "RRULE:FREQ=DAILY;COUNT=3", "03-02 03-03 03-04"},
		{"daily interval until", monday + "RRULE:FREQ=DAILY;INTERVAL=2;UNTIL=20260306T080000Z", "03-02 03-04 03-06"},
		{"until a date", monday + "RRULE:FREQ=DAILY;UNTIL=20260304", "03-02 03-03 03-04"},
		{"daily by day", monday + "RRULE:FREQ=DAILY;BYDAY=MO,FR;COUNT=3", "03-02 03-06 03-09"},
		{"weekly", monday + "RRULE:FREQ=WEEKLY;COUNT=3", "03-02 03-09 03-16"},
		{"weekly by day", monday + "RRULE:FREQ=WEEKLY;BYDAY=WE,MO;COUNT=4", "03-02 03-04 03-09 03-11"},
		{"two weeks by day", monday + "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU;COUNT=4", "03-02 03-08 03-16 03-22"},
		{"two weeks from Sunday", monday + "RRULE:FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,SU;COUNT=4", "03-02 03-15 03-16 03-29"},
		{"count includes exceptions", monday + "RRULE:FREQ=DAILY;COUNT=3\nEXDATE;TZID=Europe/Berlin:20260303T090000", "03-02 03-04"},
		{"exceptions in UTC", monday + "RRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260303T080000Z,20260304T080000Z", "03-02"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cal := read(t, c.event)
			var got []string
			for _, d := range dates(cal) {
				got = append(got, d[:5])
			}
			if strings.Join(got, " ") != c.want || len(cal.warnings) > 0 {
				t.Errorf("got %q, warnings %q, want %q", got, cal.warnings, c.want)
			}
		})
	}
}

func TestRecurringEventKeepsItsTimeOfDayWhenTheClockChanges(t *testing.T) {
	got := dates(read(t, "DTSTART;TZID=Europe/Berlin:20260328T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3"))
	if want := []string{"03-28 09:00+1h0m0s", "03-29 09:00+1h0m0s", "03-30 09:00+1h0m0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReplacedAndCancelledDates(t *testing.T) {
	got := dates(read(t,
		"UID:a\nDTSTART:20260302T090000\nRRULE:FREQ=DAILY;COUNT=4",
		"UID:a\nRECURRENCE-ID:20260303T090000\nDTSTART:20260303T140000",
		"UID:a\nRECURRENCE-ID:20260304T090000\nDTSTART:20260304T090000\nSTATUS:CANCELLED"))
	if want := []string{"03-02 09:00+0s", "03-03 14:00+0s", "03-05 09:00+0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	for _, c := range []struct{ name, event, want string }{
		{"no start", "SUMMARY:x", "is not a time"},
		{"bad time", "DTSTART:soon", "is not a time"},
		{"end before start", "DTSTART:20260302T090000\nDTEND:20260302T080000", "ends before"},
		{"bad duration", "DTSTART:20260302T090000\nDURATION:PT", "is not a duration"},
		{"unknown zone", "DTSTART;TZID=Mars/Olympus:20260302T090000", "is not known"},
		{"monthly", "DTSTART:20260302T090000\nRRULE:FREQ=MONTHLY", "only its first date"},
		{"unknown part", "DTSTART:20260302T090000\nRRULE:FREQ=DAILY;BYHOUR=9", "only its first date"},
		{"interval of zero", "DTSTART:20260302T090000\nRRULE:FREQ=DAILY;INTERVAL=0", "only its first date"},
		{"no colon", "DTSTART:20260302T090000\nNONSENSE", "leaving out the line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cal := read(t, c.event)
			if got := strings.Join(cal.warnings, "\n"); !strings.Contains(got, c.want) {
				t.Errorf("warnings = %q, want %q", got, c.want)
			}
		})
	}
	if _, err := readCalendar(strings.NewReader("<html>")); err == nil {
		t.Error("a file that is no calendar was read")
	}
}

func TestTextIsUnescaped(t *testing.T) {
	cal := read(t, `DTSTART:20260302T090000`+"\n"+`SUMMARY:a\, b\; c\\n d\ne`)
	if got, want := cal.events[0].title, "a, b; c\\n d\ne"; got != want {
		t.Errorf("title = %q, want %q", got, want)
	}
}

func TestOnlyBusyEventsTakeTime(t *testing.T) {
	cal := read(t,
		"DTSTART:20260302T080000\nDTEND:20260302T093000",
		"DTSTART:20260302T090000\nDTEND:20260302T091500",
		"DTSTART:20260302T110000\nDTEND:20260302T120000\nTRANSP:TRANSPARENT",
		"DTSTART:20260302T130000\nDTEND:20260302T140000\nSTATUS:CANCELLED",
		"DTSTART:20260302T163000\nDTEND:20260302T200000")
	at := func(h, m int) time.Time { return time.Date(2026, 3, 2, h, m, 0, 0, cal.zone) }
	got := gaps(cal.between(at(9, 0), at(17, 0)), at(9, 0), at(17, 0))
	if len(got) != 1 || !got[0].start.Equal(at(9, 30)) || !got[0].end.Equal(at(16, 30)) {
		t.Errorf("gaps = %v, want 09:30 to 16:30", got)
	}
}
