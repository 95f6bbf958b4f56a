package measure

import (
	"context"
	"math"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

func TestProcessorTimeCounts(t *testing.T) {
	before := Now()
	for deadline := time.Now().Add(50 * time.Millisecond); time.Now().Before(deadline); {
	}
	spent := Now().Since(before)
	require.GreaterOrEqual(t, spent.Wall, 50*time.Millisecond)
	require.Greater(t, spent.CPU, 5*time.Millisecond) // others may run too
}

func TestProcessorTimeOfAProcess(t *testing.T) {
	const rounding = 10 * time.Microsecond // rusage has microseconds
	for deadline := time.Now().Add(50 * time.Millisecond); time.Now().Before(deadline); {
	}
	before := Now().CPU
	got := must.Get(CPU(os.Getpid()))(t)
	after := Now().CPU
	require.GreaterOrEqual(t, got, before-rounding)
	require.LessOrEqual(t, got, after+rounding)
	for _, pid := range []int{-1, 0, math.MaxInt32 >> 3} {
		require.Error(t, must.Err(CPU(pid)))
	}
}

func TestTheClockOfAProcessCountsAsTheSystemDoes(t *testing.T) {
	const step = 10 * time.Millisecond
	child := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read line")
	in := must.Get(child.StdinPipe())(t)
	out := must.Get(child.StdoutPipe())(t)
	require.NoError(t, child.Start())
	must.Get(out.Read(make([]byte, 8)))(t) // the child has worked, and waits
	exact := must.Get(clock(child.Process.Pid))(t)
	rough := must.Get(counted(child.Process.Pid))(t)
	require.NoError(t, in.Close())
	_ = child.Wait() // it fails because its input has ended
	require.InDelta(t, exact, rough, float64(2*step), "each of two figures is rounded down")
	require.Greater(t, child.ProcessState.UserTime()+child.ProcessState.SystemTime(), exact-step)
}

var kept [][]byte

func TestAllocationsAreCounted(t *testing.T) {
	kept = make([][]byte, 0, 10_000)
	before := Now()
	for range cap(kept) {
		kept = append(kept, make([]byte, 8)) // several of which may share a block
	}
	spent := Now().Since(before)
	require.InDelta(t, cap(kept), spent.Allocs, 100)
	require.GreaterOrEqual(t, spent.Bytes, 8*float64(cap(kept)))
	kept = nil
}

func TestLiveHeap(t *testing.T) {
	before := LiveHeap()
	kept = [][]byte{make([]byte, 10<<20), make([]byte, 1<<20)}
	require.InDelta(t, 11<<20, float64(LiveHeap())-float64(before), 1<<19)
	kept = kept[1:]
	kept = append([][]byte(nil), kept...)
	require.InDelta(t, 1<<20, float64(LiveHeap())-float64(before), 1<<19)
	kept = nil
}

func TestHeapWatch(t *testing.T) {
	var w HeapWatch
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	kept = [][]byte{make([]byte, 50<<20)}
	go func() { ended <- w.Run(ctx) }()
	for w.Peak() == 0 {
		runtime.Gosched()
	}
	require.Greater(t, w.Peak(), uint64(50<<20))
	kept = nil
	cancel()
	require.NoError(t, <-ended)
	runtime.GC()
	require.NoError(t, w.Run(ctx)) // samples once
	require.Greater(t, w.Peak(), uint64(50<<20), "a peak stays one")
}

func TestResident(t *testing.T) {
	peak := must.Get(PeakRSS())(t)
	now := must.Get(RSS(os.Getpid()))(t)
	require.Greater(t, now, uint64(1<<20))
	require.GreaterOrEqual(t, peak+1<<20, now)
	require.Error(t, must.Err(RSS(-1)))
}
