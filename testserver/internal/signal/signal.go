package signal

// Signal wakes goroutines at the next change of something. It creates its channel only if a goroutine waits. The mutex
// of its owner guards it.
type Signal struct{ c chan struct{} }

// Wait returns a channel that closes at the next Fire.
func (s *Signal) Wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

// Fire wakes the goroutines that wait.
func (s *Signal) Fire() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
