//go:build unix

package recording_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/observe/recording"
)

// childFile is the variable that makes the test binary a process that records to a file.
const childFile = "LEAT_TEST_RECORD_TO"

// TestAKilledProcess kills a process that records a frame each millisecond. What it had received a second before is in
// the file.
func TestAKilledProcess(t *testing.T) {
	if path := os.Getenv(childFile); path != "" {
		recordForever(path)
		return
	}
	path := filepath.Join(t.TempDir(), "killed.rec")
	child := exec.Command(os.Args[0], "-test.run=^TestAKilledProcess$")
	child.Env = append(os.Environ(), childFile+"="+path)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	last := 0
	var at time.Time
	for lines := bufio.NewScanner(out); lines.Scan() && (at.IsZero() || time.Since(at) < 1500*time.Millisecond); {
		number, ok := strings.CutPrefix(lines.Text(), "frame ")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(number)
		require.NoError(t, err)
		if at.IsZero() {
			at = time.Now()
		}
		if time.Since(at) < 300*time.Millisecond {
			last = n // received more than a second before the kill
		}
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	file, err := recording.Open(path)
	require.NoError(t, err)
	defer file.Close()
	require.False(t, file.Complete())
	found := 0
	for rec := range file.Records(nil) {
		for line := range strings.Lines(string(rec.Data)) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			require.Equal(t, found+1, n)
			found = n
		}
	}
	require.Positive(t, last)
	require.GreaterOrEqual(t, found, last)
}

// recordForever records numbers, and prints those that the client has read.
func recordForever(path string) {
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	r, err := recording.New(file, recording.Options{})
	if err != nil {
		panic(err)
	}
	go func() { _ = r.Run(context.Background()) }()
	in, out := io.Pipe()
	rt := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: in}, nil
	}))
	req, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods?watch=true", nil)
	if err != nil {
		panic(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	go func() {
		tick := time.NewTicker(time.Millisecond)
		for n := 1; ; n++ {
			<-tick.C
			fmt.Fprintf(out, "%d\n", n)
		}
	}()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		fmt.Println("frame", lines.Text())
	}
}

// TestMemoryIsBounded records many streams of 1 MiB, to a file and to a ring that forgets. The heap does not grow.
func TestMemoryIsBounded(t *testing.T) {
	pod, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": largePod(1)})
	require.NoError(t, err)
	t.Run("a file", func(t *testing.T) {
		r, err := recording.New(io.Discard, recording.Options{Wait: true, Backlog: 1 << 20})
		require.NoError(t, err)
		requireBoundedMemory(t, r, strings.Repeat("x", 4095)+"\n", 400)
	})
	t.Run("a ring", func(t *testing.T) {
		ring, err := recording.NewRing(recording.RingOptions{
			Options: recording.Options{Wait: true, Backlog: 1 << 20}, Dir: t.TempDir(), MaxBytes: 1 << 20,
		})
		require.NoError(t, err)
		requireBoundedMemory(t, ring.Recorder, string(pod)+"\n", 120)
	})
}

// requireBoundedMemory records a number of streams, and compares the heap with that after an eighth of them.
func requireBoundedMemory(t *testing.T, r *recording.Recorder, frame string, streams int) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	rt := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(io.LimitReader(&around{b: []byte(frame)}, 1<<20))}, nil
	}))
	req, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods?watch=true", nil)
	require.NoError(t, err)
	var before uint64
	for i := range streams {
		resp, err := rt.RoundTrip(req)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.EqualValues(t, 1<<20, n)
		if i == streams/8 {
			before = heap()
		}
	}
	require.Less(t, heap(), before+8<<20)
	cancel()
	require.NoError(t, <-ended)
	require.EqualValues(t, streams<<20, r.Stats().Bytes)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
