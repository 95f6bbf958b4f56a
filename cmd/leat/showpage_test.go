package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var recordingURL = regexp.MustCompile(`page of the recording on (http://[^/]+/)\?at=\d+\n`)

// demoFile returns a recording of leat demo.
func demoFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo.rec")
	leat(t, 0, "demo", "--record", path)
	return path
}

// TestShowServesAPage serves a recording of the demonstration, and a part of it.
func TestShowServesAPage(t *testing.T) {
	path := demoFile(t)
	out, _ := inBackground(t, "show", path, "--page", "--at", "+100ms")
	out.await(t, "page of the recording on ")
	url := recordingURL.FindStringSubmatch(out.String())[1]
	require.Contains(t, readFrom(t, url+"page.js"), "The page of a recording.")
	require.Contains(t, readFrom(t, url+"recording"), `"name":"demo.rec"`)
	require.Contains(t, readFrom(t, url+"keys?q=replicasets"), `"key":"default/web"`)

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.rec")
	require.NoError(t, os.WriteFile(cut, whole[:len(whole)*2/3], 0o600))
	out, _ = inBackground(t, "show", cut, "--page")
	out.await(t, "page of the recording on ")
	require.Contains(t, out.String(), "the rest was read")
	require.Contains(t, readFrom(t, recordingURL.FindStringSubmatch(out.String())[1]+"recording"), "the file is cut off")
}

// TestShowRefusesAPage names what is wrong before it serves anything.
func TestShowRefusesAPage(t *testing.T) {
	path := demoFile(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	empty := filepath.Join(t.TempDir(), "empty.rec")
	require.NoError(t, os.WriteFile(empty, whole[:24], 0o600))
	other := filepath.Join(t.TempDir(), "other.rec")
	require.NoError(t, os.WriteFile(other, []byte("something else, which is no recording"), 0o600))
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{2, []string{path, "pods", "--page"}, "--page shows the whole recording"},
		{2, []string{path, "--page", "--at", "noon"}, "--at: "},
		{1, []string{path, "--page=nowhere"}, "--page: "},
		{1, []string{empty, "--page"}, "the recording has no lists and no watches"},
		{1, []string{other, "--page"}, "not a recording"},
		{1, []string{filepath.Join(t.TempDir(), "none.rec"), "--page"}, "no such file"},
	} {
		out, errs := leat(t, c.code, append([]string{"show"}, c.args...)...)
		require.Contains(t, errs, c.want)
		require.NotContains(t, out, "http://")
	}
	_, errs := leat(t, 1, "demo", "--record", path)
	require.Contains(t, errs, "--record: ")
}
