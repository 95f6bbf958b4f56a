package manager

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// UntilSignal calls run with a context that ends with ctx and with the first SIGINT or SIGTERM, and returns the result
// of run. A second signal exits the process at once with code 1, because its sender does not want to wait. It
// corresponds to SetupSignalHandler of controller-runtime, which never stops listening.
func UntilSignal(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		for _, obey := range []func(){cancel, func() { os.Exit(1) }} {
			select {
			case <-signals:
				obey()
			case <-over:
				return
			}
		}
	})
	defer listening.Wait()
	defer close(over)
	defer signal.Stop(signals)
	defer cancel()
	return run(ctx)
}
