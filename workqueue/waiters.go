package workqueue

// maxFreeWaiters is the number of waiters that a queue keeps for the next Gets.
const maxFreeWaiters = 64

// waiter is a Get that waits. A token in wake means that it should look again.
type waiter struct {
	wake       chan struct{} // holds one, so that waking never blocks
	prev, next *waiter
	parked     bool
}

// waiters are the Gets that wait. Two numbers keep a wake-up from being lost: as long as any waiter is parked, at
// least as many have been woken and not come back as there are keys ready. A push wakes one where that would cease to
// hold, and so does a waiter that comes back only to say that its context has ended. A Get that never waited may take
// a key meanwhile (a worker that runs is cheaper than one that must be scheduled); then a woken one parks again.
//
// A sync.Cond would need a goroutine, or an allocation, to end a wait with a context.
type waiters struct {
	top    *waiter // parked last, woken first: it is the warmest
	waking int     // woken, and not come back
	free   *waiter
	frees  int
}

// get returns a waiter for a Get that must wait.
func (ws *waiters) get() *waiter {
	w := ws.free
	if w == nil {
		return &waiter{wake: make(chan struct{}, 1)}
	}
	ws.free, w.next = w.next, nil
	ws.frees--
	return w
}

// comeBack takes a waiter back that was woken and has taken its token.
func (ws *waiters) comeBack(w *waiter) {
	ws.waking--
	ws.put(w)
}

func (ws *waiters) put(w *waiter) {
	if ws.frees < maxFreeWaiters {
		w.next, ws.free = ws.free, w
		ws.frees++
	}
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

// wakeFor wakes one waiter if fewer are awake than there are keys ready.
func (ws *waiters) wakeFor(ready int) {
	if ws.top != nil && ws.waking < ready {
		ws.wakeTop()
	}
}

// wakeAll makes everybody look again.
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

// giveUp takes a waiter back whose context has ended, woken or not.
func (ws *waiters) giveUp(w *waiter, ready int) {
	if w.parked {
		ws.unpark(w)
	} else {
		<-w.wake // the token is there: it was sent under the lock that the caller holds
		ws.waking--
		ws.wakeFor(ready)
	}
	ws.put(w)
}
