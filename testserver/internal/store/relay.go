package store

import "runtime"

// relay wakes the cursors that wait for a change, one after another: each that was woken wakes the next one when it
// leaves, before it sends anything. If a change woke a thousand watches at once, the next request would run after all
// of them. With the relay it runs after a few, and the watches whose turn comes later send both changes with one write.
// A client that does not read delays no other one, because its watch has passed the turn on before it sends. The price:
// one change reaches many watches with half of the processors. The lock of the store guards a relay.
type relay struct {
	first, last *Cursor // those that wait, in the order in which they began
	fires       uint64
	turns       int // number of cursors that were woken and have not left
}

// turn is the place of a cursor in a relay.
type turn struct {
	wake           chan struct{} // has room for one value
	since          uint64        // fires of the relay when the cursor found no change
	previous, next *Cursor
	waits, woken   bool
}

// looked notes that a cursor found no change.
func (t *turn) looked(r *relay) { t.since = r.fires }

// wait adds a cursor. The channel receives a value when it is woken, or now if the relay fired after looked.
func (r *relay) wait(c *Cursor) <-chan struct{} {
	if c.since != r.fires {
		c.wake <- struct{}{}
		return c.wake
	}
	c.waits, c.previous = true, r.last
	if r.last == nil {
		r.first = c
	} else {
		r.last.next = c
	}
	r.last = c
	return c.wake
}

// fire wakes the cursors that wait.
func (r *relay) fire() {
	r.fires++
	for r.turns < max(1, runtime.GOMAXPROCS(0)/2) && r.wakeFirst() {
		r.turns++
	}
}

// wakeFirst wakes the first cursor that has waited since before the last fire. It returns false if no cursor has.
func (r *relay) wakeFirst() bool {
	c := r.first
	if c == nil || c.since == r.fires {
		return false
	}
	r.remove(c)
	c.woken = true
	c.wake <- struct{}{}
	return true
}

// leave ends the wait of a cursor for any reason, and passes its turn on.
func (r *relay) leave(c *Cursor) {
	select {
	case <-c.wake: // another reason ended the wait
	default:
	}
	switch {
	case c.waits:
		r.remove(c)
	case c.woken:
		c.woken = false
		if !r.wakeFirst() {
			r.turns--
		}
	}
}

func (r *relay) remove(c *Cursor) {
	if c.previous == nil {
		r.first = c.next
	} else {
		c.previous.next = c.next
	}
	if c.next == nil {
		r.last = c.previous
	} else {
		c.next.previous = c.previous
	}
	c.waits, c.previous, c.next = false, nil, nil
}
