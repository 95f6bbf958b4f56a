package runstate

// State says how far something is that runs once.
type State int

// The states, in their order.
const (
	Created State = iota
	Running
	Ending // its Run is about to return, and waits for what it started
	Ended
)

// IsClosed reports whether a channel is closed on which nothing is sent.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
