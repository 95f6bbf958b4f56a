package websocket

import "time"

// WatchWithPulse is Watch with other times than 30 and 15 seconds, for tests that need the kernel and so the real clock.
func WatchWithPulse[T any](source Source[T], after, timeout time.Duration) *ListerWatcher[T] {
	return &ListerWatcher[T]{source: source, pulse: pulse{after: after, timeout: timeout}}
}
