package recording_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/recording"
)

// answered records one request and its answer.
func answered(t *testing.T, path, body string, o recording.Options) (*bytes.Buffer, recording.Stats) {
	t.Helper()
	var file bytes.Buffer
	o.Compression = recording.Plain()
	r, err := recording.New(&file, o)
	require.NoError(t, err)
	rt := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}))
	req, err := http.NewRequest(http.MethodGet, "https://server"+path, nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, body, string(got), "the client gets the answer")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))
	require.EqualValues(t, 1, r.Stats().Streams)
	return &file, r.Stats()
}

// TestNoAnswerShowsASecret records each answer that a server could send for each form of a request. The names of fields
// are in the file, and the values are not.
func TestNoAnswerShowsASecret(t *testing.T) {
	const secret = `{"metadata":{"name":"s","uid":"u","resourceVersion":"7","annotations":{"a":"top-secret"}},"data":{"p":"top-secret"}}`
	const table = `{"kind":"Table","rows":[{"cells":["s","top-secret"],"object":` + secret + `}]}`
	for _, query := range []string{
		"", "?watch=true", "?watch=1", "?watch=True", "?watch=t", "?watch=yes", "?watch=", "?watch", "?watch=false", "?watch=FALSE",
		"?watch=0", "?watch=true&watch=false", "?watch=false&watch=true",
	} {
		for _, path := range []string{"/api/v1/secrets", "/api/v1/Secrets", "/api/v1/namespaces/shop/SECRETS"} {
			for _, body := range []string{
				`{"items":[` + secret + `]}` + "\n", `{"type":"ADDED","object":` + secret + "}\n", table + "\n",
				`{"type":"ADDED","object":` + table + "}\n",
			} {
				file, stats := answered(t, path+query, body, recording.Options{})
				require.Contains(t, file.String(), `"data":{"p":"`+recording.Mark, path+query)
				require.NotContains(t, file.String(), "top-secret", "%s: %s", path+query, body)
				require.Zero(t, stats.Lost)
			}
		}
	}
}

// TestSelectorsOfRedactedFields are recorded with the texts that stand for the values in objects.
func TestSelectorsOfRedactedFields(t *testing.T) {
	for _, c := range []struct{ path, fields, wantFields, labels, wantLabels string }{
		{"spec.token", "spec.token=private", "spec.token=H", "", ""},
		{"spec.token", "metadata.name=a,spec.token!=private", "metadata.name=a,spec.token!=H", "app==web", "app==web"},
		{"spec.token", "spec.tokens==a,status.phase=b", "spec.tokens==a,status.phase=b", "", ""},
		{"spec", "spec.token=private,metadata.namespace=a", "metadata.namespace=a,spec.token=H", "", ""},
		{"source.component", "source=private", "source=H", "", ""},
		{"*", "metadata.name=a,spec.token=private", "metadata.name=a,spec.token=H", "app in (private,public),x", "app in (H,H),x"},
		{"metadata.labels", "", "", "app=private,!y,z notin (private),n>1", "app = H,n gt H,!y,z notin (H)"},
		{"metadata.labels['a/b']", "", "", "a/b!=private,c=d", "a/b != H,c=d"},
		{"spec.token", "private", "H", "private==private==", "H"},
	} {
		file, _ := answered(t, "/apis/x.io/v1/widgets?"+url.Values{"fieldSelector": {c.fields}, "labelSelector": {c.labels}}.Encode(),
			`{"items":[{"spec":{"token":"private"},"source":{"component":"private"},"metadata":{"labels":{"app":"private"}}}]}`,
			recording.Options{Redact: []recording.Redaction{{Resource: "widgets.x.io", Path: c.path}}})
		options := opened(t, file).Streams()[0].Options
		require.Equal(t, c.wantFields, hashesOut(options["fieldSelector"]))
		require.Equal(t, c.wantLabels, hashesOut(options["labelSelector"]))
		if _, hidden, _ := strings.Cut(options["fieldSelector"], "token="); strings.HasPrefix(hidden, recording.Mark) {
			hidden, _, _ = strings.Cut(hidden, ",")
			require.Contains(t, file.String(), `"token":"`+hidden+`"`, "the value in the object")
		}
	}
}

// hashesOut replaces each hash by H.
func hashesOut(text string) string {
	for {
		at := strings.Index(text, recording.Mark)
		if at < 0 {
			return text
		}
		text = text[:at] + "H" + text[at+28:]
	}
}

// TestStatsCountRedactedFields has redactions of fields that exist, that do not exist, and that are always kept.
func TestStatsCountRedactedFields(t *testing.T) {
	o := recording.Options{Redact: []recording.Redaction{
		{Resource: "ConfigMaps", Path: "data"},
		{Resource: "configmaps", Path: "Data"},
		{Resource: "*", Path: "data.b"},
		{Resource: "configmaps", Path: "*.name"},
		{Resource: "pods", Path: "spec"},
		{Resource: "configmaps", Path: "data"},
		{Resource: "configmaps", Path: "list.*.a"},
	}}
	body := `{"items":[{"metadata":{"name":"one"},"data":{"a":"1","b":"2"}},{"data":{"b":"3"}},{"data":{},"list":[{"x":{"a":1}},{"y":{"a":2}}]}]}`
	file, stats := answered(t, "/api/v1/configmaps", body, o)
	require.Equal(t, []uint64{3, 0, 2, 0, 0, 3, 2}, stats.Redacted)
	require.Contains(t, file.String(), `"name":"one"`)
	_, stats = answered(t, "/api/v1/configmaps", body, recording.Options{})
	require.Empty(t, stats.Redacted)
}

// TestTheIdentityIsNotRedacted refuses redactions without effect.
func TestTheIdentityIsNotRedacted(t *testing.T) {
	for path, ok := range map[string]bool{
		"kind": false, "apiVersion": false, "metadata.name": false, "metadata['uid']": false, "metadata.namespace.x": false,
		"metadata[*].resourceVersion": false, "metadata": true, "metadata.labels.name": true, "spec.kind": true, "*": true, "metadata.*": true,
	} {
		_, err := recording.New(io.Discard, recording.Options{Redact: []recording.Redaction{{Resource: "pods", Path: path}}})
		if ok {
			require.NoError(t, err, path)
			continue
		}
		require.ErrorContains(t, err, "recording: redaction of pods: ")
		require.ErrorContains(t, err, "this field is never redacted, because a recording needs the kind and the identity of each object")
	}
}
