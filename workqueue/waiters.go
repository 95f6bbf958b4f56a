package workqueue

// waiter is a Get that waits. A token in wake means that the Get should look again.
type waiter struct {
	wake       chan struct{} // holds one token, so that waking never blocks
	prev, next *waiter
	parked     bool
}

// waiters are the Gets that wait. One rule keeps a wake-up from being lost: while any waiter is parked, the number of
// waiters that were woken and have not returned is at least the number of ready keys. A push wakes one waiter if the
// rule would no longer hold. So does a waiter that returns only because its context has ended. Meanwhile, a Get that
// never waited may take a key, because a running worker is cheaper than one that must be scheduled; the woken waiter
// then parks again.
//
// A sync.Cond would need a goroutine or an allocation to end a wait with a context.
type waiters struct {
	top    *waiter // the last one parked is woken first, because its caches are warm
	waking int     // number of waiters that were woken and have not returned
	free   *waiter // for later Gets; at most as many as Gets have waited at the same time
}

// get returns a waiter for a Get that must wait.
func (ws *waiters) get() *waiter {
	w := ws.free
	if w == nil {
		return &waiter{wake: make(chan struct{}, 1)}
	}
	ws.free, w.next = w.next, nil
	return w
}

// comeBack takes back a waiter that was woken and has taken its token.
func (ws *waiters) comeBack(w *waiter) {
	ws.waking--
	ws.put(w)
}

func (ws *waiters) put(w *waiter) {
	w.next, ws.free = ws.free, w
}

func (ws *waiters) park(w *waiter) {
	w.parked = true
	w.next = ws.top
	if ws.top != nil {
		ws.top.prev = w
	}
	ws.top = w
}

func (ws *waiters) unpark(w *waiter) {
	if w.prev == nil {
		ws.top = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.parked = nil, nil, false
}

// wakeFor wakes one waiter if fewer waiters are awake than keys are ready.
func (ws *waiters) wakeFor(ready int) {
	if ws.top != nil && ws.waking < ready {
		ws.wakeTop()
	}
}

// wakeAll makes all waiting Gets look again.
func (ws *waiters) wakeAll() {
	for ws.top != nil {
		ws.wakeTop()
	}
}

func (ws *waiters) wakeTop() {
	w := ws.top
	ws.unpark(w)
	ws.waking++
	w.wake <- struct{}{}
}

// giveUp takes back a waiter whose context has ended, whether it was woken or not.
func (ws *waiters) giveUp(w *waiter, ready int) {
	if w.parked {
		ws.unpark(w)
	} else {
		<-w.wake // the token is there, because it was sent under the lock that the caller holds
		ws.waking--
		ws.wakeFor(ready)
	}
	ws.put(w)
}
