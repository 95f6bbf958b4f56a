//go:build unix

package front

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// withParent returns a context that also ends when the program that started this one has ended. Tests that crash leave
// no servers then. The leader of a session has no such program: setsid starts a server that stays.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	if session, err := unix.Getsid(0); err != nil || session == os.Getpid() || parent <= 1 {
		return ctx, cancel
	}
	go func() {
		defer cancel()
		check := time.NewTicker(200 * time.Millisecond)
		defer check.Stop()
		for os.Getppid() == parent {
			select {
			case <-check.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
