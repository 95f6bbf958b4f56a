package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"go.uber.org/zap"
)

func main() {
	o := options{out: os.Stdout}
	verbose := false
	flag.DurationVar(&o.time, "time", 2*time.Minute, "how long to begin new rounds")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "decides what happens in which round")
	flag.StringVar(&o.profile, "profile", "", "write heap profiles to this folder: after the warm-up and at the end")
	flag.BoolVar(&verbose, "v", false, "write the log of everything to the standard error")
	flag.Parse()
	if o.profile != "" {
		runtime.MemProfileRate = 1024 // small things that are many must show
	}
	o.log = zap.NewNop()
	if verbose {
		o.log = newLogger(os.Stderr)
	}
	// A soak that is interrupted says what it has seen.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
