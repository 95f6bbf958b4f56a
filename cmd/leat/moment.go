package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// stamp formats a time with its date.
func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000 MST") }

// clock formats a time of day.
func clock(t time.Time) string { return t.Format("15:04:05.000") }

var errMoment = errors.New("write a time as 12:03:05, 2026-03-01T12:03:05Z or +90s")

// parseMoment reads a time of a recording. A time of day is that of the first day, or that of the second day if the
// first is before the recording.
func parseMoment(text string, first, last time.Time) (time.Time, error) {
	var at time.Time
	if rest, ok := strings.CutPrefix(text, "+"); ok {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return at, fmt.Errorf("%q: %w", text, errMoment)
		}
		at = first.Add(d)
	} else if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		at = t
	} else {
		ok := false
		for _, layout := range []string{"15:04:05.999999999", "15:04"} {
			if t, err := time.Parse(layout, text); err == nil {
				y, m, d := first.Date()
				at, ok = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), first.Location()), true
				break
			}
		}
		if !ok {
			return at, fmt.Errorf("%q: %w", text, errMoment)
		}
		if next := at.AddDate(0, 0, 1); at.Before(first.Truncate(time.Second)) && !next.After(last) {
			at = next
		}
	}
	if at.Before(first.Truncate(time.Second)) || at.After(last.Add(time.Second)) {
		return at, fmt.Errorf("%s is outside of the recording, which is from %s to %s", text, stamp(first), stamp(last))
	}
	return at, nil
}
