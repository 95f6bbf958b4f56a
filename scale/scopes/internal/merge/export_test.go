package merge

import (
	"fmt"
	"time"
)

// Memory describes everything that a merger remembers, except times. waits is the time until the first held deletion is
// overdue, or 0.
func (m *Merger[T]) Memory() (text string, waits time.Duration) {
	defer m.begin().Commit()
	text = fmt.Sprint(m.newest, m.complete, m.announced, m.unlisted, m.layout, len(m.published))
	for _, s := range m.slots {
		text += fmt.Sprint("#", s.members, s.reached, "-", s.lost, s.held, s.visible, s.pending, s.isListed, s.mixed)
	}
	for key, h := range m.held {
		text += fmt.Sprint("!", key, h.last, h.unknown, h.version, h.stream.slot, time.Until(h.until))
		if left := time.Until(h.until); waits == 0 || left < waits {
			waits = left
		}
	}
	return text, waits
}

// ForgetLost breaks the rule that a deletion waits until its own stream has passed the losses of the others.
func (m *Merger[T]) ForgetLost() {
	defer m.begin().Commit()
	for _, s := range m.slots {
		s.lost = ""
	}
}
