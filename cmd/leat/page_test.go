package main

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var pageURL = regexp.MustCompile(`live page on (http://\S+)\n`)

// readPage returns the state that the page at the address in an output shows.
func readPage(t *testing.T, named *output) string {
	t.Helper()
	named.await(t, "live page on ")
	answer, err := http.Get(pageURL.FindStringSubmatch(named.String())[1] + "state")
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body)
}

func TestDemoShowsAPage(t *testing.T) {
	out, _ := inBackground(t, "demo", "--page")
	out.await(t, "still running")
	text := readPage(t, out)
	for _, part := range []string{`"program":"leat demo"`, `"name":"replicasets.apps"`, `"name":"pods"`, `"name":"replicas"`} {
		require.Contains(t, text, part)
	}
}

func TestWatchShowsAPage(t *testing.T) {
	path := serving(t)
	out, errs := inBackground(t, "watch", "configmaps", "--kubeconfig", path, "--page")
	out.await(t, "SYNCED")
	require.Contains(t, readPage(t, errs), `"name":"printer","synced":true`)
}

// A command that cannot serve its page does not start.
func TestPageNeedsAnAddress(t *testing.T) {
	for _, command := range [][]string{{"demo"}, {"watch", "pods"}} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), append(command, "--page=nowhere"), out, errs))
		require.Contains(t, errs.String(), "leat: --page: ")
		require.Empty(t, out.String())
	}
}
