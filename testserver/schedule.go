package testserver

import "time"

// schedule says when a watch sends bookmarks and ends. It compares times, and does not note which timer has fired: of
// several timers for one instant, the watch may see one before the others have fired. What it sends must not depend on
// that.
type schedule struct {
	timer        *time.Timer // fires at the earliest of the times
	interval     time.Duration
	deadline     time.Time
	nextBookmark time.Time // zero without bookmarks
	lastBookmark time.Time // zero without bookmarks, and after the last one
}

// start begins a watch that ends after a timeout and sends a bookmark in each interval, or none if the interval is
// negative. Two seconds before the end it sends one more, which lets the client resume from a late version.
func (s *schedule) start(timeout, interval time.Duration) {
	const early = 2 * time.Second
	now := time.Now()
	s.interval, s.deadline = interval, now.Add(timeout)
	if interval >= 0 {
		s.nextBookmark = now.Add(interval)
		if timeout > early {
			s.lastBookmark = s.deadline.Add(-early)
		}
	}
	s.timer = time.NewTimer(s.next().Sub(now))
}

// next returns the earliest of the times.
func (s *schedule) next() time.Time {
	next := s.deadline
	for _, at := range []time.Time{s.nextBookmark, s.lastBookmark} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// due reports whether the watch ends now, and whether it sends a bookmark. The next bookmark is then an interval away.
func (s *schedule) due() (deadline, bookmark bool) {
	now := time.Now()
	if !now.Before(s.deadline) {
		return true, false
	}
	if !s.nextBookmark.IsZero() && !now.Before(s.nextBookmark) {
		s.nextBookmark, bookmark = now.Add(s.interval), true
	}
	if !s.lastBookmark.IsZero() && !now.Before(s.lastBookmark) {
		s.lastBookmark, bookmark = time.Time{}, true
	}
	if bookmark {
		s.timer.Reset(s.next().Sub(now))
	}
	return false, bookmark
}

func (s *schedule) stop() { s.timer.Stop() }
