//go:build !unix

package front

import (
	"context"
	"os"
)

// withParent returns a context that also ends when the program that started this one has ended. Tests that crash leave
// no servers then.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if parent, err := os.FindProcess(os.Getppid()); err == nil {
		go func() {
			defer cancel()
			_, _ = parent.Wait() // Windows lets every process wait for another
		}()
	}
	return ctx, cancel
}
