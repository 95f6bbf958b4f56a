package websocket

import "time"

// WatchWithKeepAlive is Watch with other durations than 30 and 15 seconds, for tests that need the kernel and so the
// real clock.
func WatchWithKeepAlive[T any](source Source[T], after, timeout time.Duration) *ListerWatcher[T] {
	return &ListerWatcher[T]{source: source, keepAlive: keepAlive{after: after, timeout: timeout}}
}
