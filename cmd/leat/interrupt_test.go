package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// asLeat makes the test binary run main instead of the tests. asBusy makes it run busy.
const (
	asLeat = "LEAT_TEST_RUN_MAIN"
	asBusy = "LEAT_TEST_BUSY"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asLeat) != "":
		main()
	case os.Getenv(asBusy) != "":
		busy()
	}
	os.Exit(m.Run())
}

// busy is a command that does not end with its context, as one that reads a large file.
func busy() {
	ctx := interruptible()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	_, _ = io.ReadAll(os.Stdin) // until the test ends
}

// TestTheSecondInterruptEndsABusyProcess interrupts a process that has seen the first signal and still works.
func TestTheSecondInterruptEndsABusyProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot interrupt another one")
	}
	for _, second := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), asBusy+"=1")
		input := must.Get(process.StdinPipe())(t)
		output := must.Get(process.StdoutPipe())(t)
		require.NoError(t, process.Start())
		lines := bufio.NewReader(output)
		for _, want := range []string{"ready\n", "interrupt signal received\n"} {
			line := must.Get(lines.ReadString('\n'))(t)
			require.Equal(t, want, line)
			if want == "ready\n" {
				require.NoError(t, process.Process.Signal(os.Interrupt))
			}
		}
		require.NoError(t, process.Process.Signal(second))
		rest := must.Get(io.ReadAll(lines))(t)
		require.Empty(t, rest)
		require.ErrorContains(t, process.Wait(), "signal: "+second.String())
		_ = input.Close()
	}
}

// TestTheFirstInterruptEndsTheProcess interrupts a command whose server accepts connections and never answers.
func TestTheFirstInterruptEndsTheProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot interrupt another one")
	}
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	leat := exec.CommandContext(t.Context(), os.Args[0], "watch", "pods", "--server", "http://"+silent.Addr().String())
	leat.Env = append(os.Environ(), asLeat+"=1")
	var out bytes.Buffer
	leat.Stdout, leat.Stderr = &out, &out
	require.NoError(t, leat.Start())
	conn := must.Get(silent.Accept())(t)
	require.NoError(t, leat.Process.Signal(os.Interrupt))
	_ = leat.Wait()
	require.Equal(t, 0, leat.ProcessState.ExitCode(), &out)
	require.NoError(t, conn.Close())
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
