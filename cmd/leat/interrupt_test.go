package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// asLeat makes the test binary run main instead of the tests.
const asLeat = "LEAT_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asLeat) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestTheFirstInterruptEndsTheProcess interrupts commands whose server accepts connections and never answers.
func TestTheFirstInterruptEndsTheProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot interrupt another one")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for command, code := range map[string]int{"watch": 0, "wait": 1} {
		leat := exec.CommandContext(t.Context(), os.Args[0], command, "pods", "--server", "http://"+silent.Addr().String())
		if command == "wait" {
			leat.Args = append(leat.Args, "--all", "--for", "delete", "--timeout", "1h")
		}
		leat.Env = append(os.Environ(), asLeat+"=1")
		var out bytes.Buffer
		leat.Stdout, leat.Stderr = &out, &out
		require.NoError(t, leat.Start())
		conn, err := silent.Accept()
		require.NoError(t, err)
		require.NoError(t, leat.Process.Signal(os.Interrupt))
		_ = leat.Wait()
		require.Equal(t, code, leat.ProcessState.ExitCode(), &out)
		require.NoError(t, conn.Close())
	}
}

// blockedPipe is a pipe whose reader has stopped: a Write does not return before the test ends.
type blockedPipe struct {
	entered chan struct{} // gets a value with every Write
	end     chan struct{}
}

func newBlockedPipe(t *testing.T) *blockedPipe {
	t.Helper()
	p := &blockedPipe{entered: make(chan struct{}, 100), end: make(chan struct{})}
	t.Cleanup(func() { close(p.end) })
	return p
}

func (p *blockedPipe) Write([]byte) (int, error) {
	p.entered <- struct{}{}
	<-p.end
	return 0, errors.New("the test is over")
}

func TestAnInterruptEndsAWatchWhoseOutputIsNotRead(t *testing.T) {
	path := serving(t)
	create(t, path, "one")
	create(t, path, "two")
	ctx, cancel := context.WithCancel(t.Context())
	pipe, errs := newBlockedPipe(t), newOutput()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"watch", "configmaps", "-A", "--kubeconfig", path}, pipe, errs) }()
	<-pipe.entered
	cancel()
	require.Zero(t, <-ended, errs)
	require.Empty(t, errs.String())
	require.Empty(t, pipe.entered, "after a write that was given up there is no other")
}

func TestAWriteHasAMomentAfterAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out := newOutput()
		n, err := (&interruptibleWriter{w: out, interrupted: ctx.Done()}).Write([]byte("last words"))
		require.NoError(t, err)
		require.Equal(t, len("last words"), n)
		require.Equal(t, "last words", out.String())

		pipe := newBlockedPipe(t)
		w := &interruptibleWriter{w: pipe, interrupted: ctx.Done()}
		for _, want := range []time.Duration{writeGrace, 0} {
			start := time.Now()
			_, err = w.Write([]byte("x"))
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, want, time.Since(start))
		}
		require.Len(t, pipe.entered, 1)
	})
}

// TestAnInterruptEndsARead has a file system that does not answer.
func TestAnInterruptEndsARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error)
		reading := make(chan struct{})
		read := func() (int, error) {
			close(reading)
			return 7, <-answer
		}
		go func() {
			<-reading
			cancel()
		}()
		n, err := untilInterrupted(ctx, read)
		require.EqualError(t, err, "interrupted: context canceled")
		require.Zero(t, n)
		answer <- nil // lets the goroutine of the read end
	})
}
