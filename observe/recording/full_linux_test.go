package recording_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
)

// childFolder is the variable that makes the test binary a process that cannot write.
const childFolder = "LEAT_TEST_FULL_FOLDER"

// TestAFullDiskAfterAKill starts a process that can write only the header of a file, as on a full disk. It keeps the
// segments of the process that was killed before, and starts. When the disk has room, the next start writes the dump.
func TestAFullDiskAfterAKill(t *testing.T) {
	if dir := os.Getenv(childFolder); dir != "" {
		startOnAFullDisk(t, dir)
		return
	}
	dir := t.TempDir()
	var recorded bytes.Buffer
	recorder := must.Get(recording.New(&recorded, recording.Options{}))(t)
	rt := recorder.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"items":[]}`))}, nil
	}))
	req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/pods", nil))(t)
	resp := must.Get(rt.RoundTrip(req))(t)
	must.Get(io.ReadAll(resp.Body))(t)
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, recorder.Run(ended))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "segment-00000001"), recorded.Bytes(), 0o600))
	child := exec.Command(os.Args[0], "-test.run=^TestAFullDiskAfterAKill$")
	child.Env = append(os.Environ(), childFolder+"="+dir)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	kept := must.Get(os.ReadFile(filepath.Join(dir, "killed-00000001-00000001.rec")))(t)
	require.Equal(t, recorded.Bytes(), kept)
	dumps := must.Get(filepath.Glob(filepath.Join(dir, "dump-*")))(t)
	require.Empty(t, dumps)
	ring := must.Get(recording.NewRing(recording.RingOptions{Dir: dir}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, ring.Run(ctx))
	dumps = must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	require.Len(t, dumps, 1)
	require.Contains(t, dumps[0], "-killed-")
}

func startOnAFullDisk(t *testing.T, dir string) {
	limit := syscall.Rlimit{Cur: 100, Max: 100}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	var reported []error
	ring, err := recording.NewRing(recording.RingOptions{Dir: dir, Options: recording.Options{OnError: func(err error) { reported = append(reported, err) }}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, ring.Run(ctx))
	require.NotEmpty(t, reported)
	require.ErrorIs(t, reported[0], syscall.EFBIG)
	require.True(t, strings.HasPrefix(reported[0].Error(), "recording: dump of a killed process"))
}
