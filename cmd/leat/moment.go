package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/visible"
)

// stamp formats a time with its date.
func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000 MST") }

// clock formats a time of day.
func clock(t time.Time) string { return t.Format("15:04:05.000") }

var errMoment = errors.New("write a time as 12:03:05, 2026-03-01T12:03:05Z or +90s")

// parseMoment reads a time of a recording. A time is the end of its last digit, so that it includes what is printed
// with it: 12:03:05 is the end of this second. A distance is exact to the millisecond. A time of day is that of the
// first day, or that of the second day if the first is before the recording. A time within the second behind the last
// record is the time of the last record.
func parseMoment(text string, first, last time.Time) (time.Time, error) {
	begin, digit, err := parseTime(text, first)
	if err != nil {
		return begin, err
	}
	end := func(t time.Time) time.Time { return t.Add(digit - 1) }
	latest := last.Add(time.Second) // the printed length of a recording is rounded
	if next := begin.AddDate(0, 0, 1); isTimeOfDay(text) && end(begin).Before(first) && !next.After(latest) {
		begin = next
	}
	at := end(begin)
	if at.Before(first) || begin.After(latest) {
		return at, fmt.Errorf("%s is outside of the recording, which is from %s to %s", text, stamp(first), stamp(last))
	}
	if at.After(last) {
		at = last
	}
	return at, nil
}

// stateMoment reads a time for which a command shows the state of a resource. The client knew no state before the end
// of the first list; the time is then this end.
func stateMoment(stderr io.Writer, flag, text string, timeline *recorded, r api.Resource) (time.Time, error) {
	first, last := timeline.Span()
	at, err := parseMoment(text, first, last)
	if err != nil {
		return at, usagef("%s: %w", flag, err)
	}
	for _, c := range timeline.Changes() {
		if c.Resource != r || !c.Initial {
			continue
		}
		if at.Before(c.Time) {
			visible.Fprintf(stderr, "leat: %s %s is before the end of the first list of %s, so leat shows the state of this list (%s)\n",
				flag, text, r, clock(c.Time))
			at = c.Time
		}
		break // the other objects of the list have the same time
	}
	return at, nil
}

// parseTime returns the first moment of a text, and the length of its last digit. A time of day is on the day of first.
func parseTime(text string, first time.Time) (begin time.Time, digit time.Duration, err error) {
	if rest, ok := strings.CutPrefix(text, "+"); ok {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return begin, 0, fmt.Errorf("%q: %w", text, errMoment)
		}
		return first.Add(d), time.Millisecond, nil
	}
	digit = time.Second
	if point := strings.IndexAny(text, ".,"); point >= 0 {
		fraction := text[point+1:]
		for range min(9, len(fraction)-len(strings.TrimLeft(fraction, "0123456789"))) {
			digit /= 10
		}
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, digit, nil
	}
	t, err := time.Parse("15:04:05.999999999", text)
	if err != nil {
		t, err = time.Parse("15:04", text)
		digit = time.Minute
	}
	if err != nil {
		return begin, 0, fmt.Errorf("%q: %w", text, errMoment)
	}
	y, m, d := first.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), first.Location()), digit, nil
}

// isTimeOfDay reports whether a text that parseTime reads has no date.
func isTimeOfDay(text string) bool {
	return !strings.HasPrefix(text, "+") && !strings.Contains(text, "T")
}
