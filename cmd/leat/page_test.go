package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var pageURL = regexp.MustCompile(`live page on (http://\S+)\n`)

// readPage returns the state that the page at the address in an output shows.
func readPage(t *testing.T, named *output) string {
	t.Helper()
	named.await(t, "live page on ")
	return readFrom(t, pageURL.FindStringSubmatch(named.String())[1]+"state")
}

func readFrom(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
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

func TestServeShowsAPage(t *testing.T) {
	out, _ := inBackground(t, "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", "", "--token", "secret", "--page")
	require.Contains(t, readPage(t, out), `"lab":true`)
	require.Eventually(t, func() bool {
		text := readPage(t, out)
		return strings.Count(text, `"synced":true`) == len(shownByServe) && !strings.Contains(text, "secret")
	}, 20*time.Second, 20*time.Millisecond)
}

// TestLabChangesTheDemo makes reconciles fail and panic, and then lets them work.
func TestLabChangesTheDemo(t *testing.T) {
	out, _ := inBackground(t, "demo", "--page")
	out.await(t, "still running")
	url := pageURL.FindStringSubmatch(out.String())[1]
	press := func(name, body string) (int, string) {
		answer, err := http.Post(url+"actions/"+name, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	for _, c := range [][3]string{
		{"scale", `{"replicas": "many"}`, "not a number from 0 to 200"},
		{"traffic", `{"rate": "NaN"}`, "not a number from 0 to 1000"},
		{"resume", `{"slow": "1h"}`, "not a duration up to 1m"},
		{"fault", `{"fault": "nonsense"}`, "nonsense"},
		{"delete", `{"name": "nothing"}`, "not found"},
	} {
		code, text := press(c[0], c[1])
		require.Equal(t, 422, code, text)
		require.Contains(t, text, c[2])
	}
	for _, mood := range []string{"panic", "fail", "work"} {
		code, text := press(mood, `{}`)
		require.Equal(t, 200, code, text)
	}
	code, text := press("scale", `{"name": "mill", "replicas": "2"}`)
	require.Equal(t, 200, code, text)
	require.Eventually(t, func() bool { return strings.Contains(readFrom(t, url+"keys?q=mill-1"), "shop/mill-1") }, 20*time.Second, 20*time.Millisecond)
}

// A command that cannot serve its page does not start.
func TestPageNeedsAnAddress(t *testing.T) {
	for _, command := range [][]string{{"demo"}, {"watch", "pods"}, {"serve"}} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), append(command, "--page=nowhere"), out, errs))
		require.Contains(t, errs.String(), "leat: --page: ")
		require.Empty(t, out.String())
	}
}
