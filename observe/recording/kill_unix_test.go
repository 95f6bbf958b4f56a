//go:build unix

package recording_test

import (
	"bufio"
	"context"
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

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
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
	out := must.Get(child.StdoutPipe())(t)
	require.NoError(t, child.Start())
	last := 0
	var at time.Time
	for lines := bufio.NewScanner(out); lines.Scan() && (at.IsZero() || time.Since(at) < 1500*time.Millisecond); {
		number, ok := strings.CutPrefix(lines.Text(), "frame ")
		if !ok {
			continue
		}
		n := must.Get(strconv.Atoi(number))(t)
		if at.IsZero() {
			at = time.Now()
		}
		if time.Since(at) < 300*time.Millisecond {
			last = n // received more than a second before the kill
		}
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	file := must.Get(recording.Open(path))(t)
	defer file.Close()
	require.False(t, file.Complete())
	found := 0
	for rec := range file.Records(nil) {
		for line := range strings.Lines(string(rec.Data)) {
			n := must.Get(strconv.Atoi(strings.TrimSpace(line)))(t)
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
	rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
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

// TestMemoryIsBounded records 400 MB in a stream without an end, and thousands of streams. The heap does not grow.
func TestMemoryIsBounded(t *testing.T) {
	r := must.Get(recording.New(io.Discard, recording.Options{Wait: true, Backlog: 1 << 20}))(t)
	stop := fixture.Start(t, r.Run)
	frame := []byte(strings.Repeat("x", 4095) + "\n")
	rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(io.LimitReader(&around{b: frame}, 1<<20))}, nil
	}))
	req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/pods?watch=true", nil))(t)
	var before uint64
	for i := range 400 {
		resp := must.Get(rt.RoundTrip(req))(t)
		n := must.Get(io.Copy(io.Discard, resp.Body))(t)
		require.EqualValues(t, 1<<20, n)
		if i == 50 {
			before = heap()
		}
	}
	require.Less(t, heap(), before+8<<20)
	stop()
	require.EqualValues(t, 400<<20, r.Stats().Bytes)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// around repeats one stream forever.
type around struct {
	b  []byte
	at int
}

func (a *around) Read(p []byte) (int, error) {
	n := copy(p, a.b[a.at:])
	a.at = (a.at + n) % len(a.b)
	return n, nil
}
