package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWebPagesGetNothing sends requests of a web page, and of a user, to each server that a command starts.
func TestWebPagesGetNothing(t *testing.T) {
	serve, _ := inBackground(t, "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", "", "--metrics", "127.0.0.1:0", "--allow-host", "leat.example")
	serve.await(t, "/metrics\n")
	demo, _ := inBackground(t, "demo", "--keep-running", "--metrics", "127.0.0.1:0")
	demo.await(t, "--server http")
	for _, url := range []string{
		after(serve, "serving on ") + "/api/v1/pods", after(serve, "metrics on "),
		after(demo, "--server ") + "/api/v1/pods", after(demo, "metrics on "),
	} {
		status := func(host string, header http.Header) int {
			r, err := http.NewRequest(http.MethodGet, url, nil)
			require.NoError(t, err)
			r.Host, r.Header = host, header
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			return answer.StatusCode
		}
		require.Equal(t, 403, status("", http.Header{"Origin": {"https://evil.example"}}), url)
		require.Equal(t, 403, status("", http.Header{"Sec-Fetch-Site": {"cross-site"}}), url)
		require.Equal(t, 403, status("evil.example", http.Header{"Accept-Language": {"en"}}), url)
		require.Equal(t, 200, status("", http.Header{"Sec-Fetch-Site": {"none"}, "Accept-Language": {"en"}}), url)
		if strings.HasPrefix(url, after(serve, "serving on ")) {
			require.Equal(t, 200, status("leat.example", nil), url)
		}
	}
}

// after returns the word that follows a text in an output.
func after(o *output, text string) string {
	_, rest, _ := strings.Cut(o.String(), text)
	word, _, _ := strings.Cut(rest, "\n")
	return word
}
