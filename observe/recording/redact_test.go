package recording_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
)

// answered records one request and its answer.
func answered(t *testing.T, path, body string, o recording.Options) (*bytes.Buffer, recording.Stats) {
	t.Helper()
	return answeredAs(t, path, "application/json", body, false, o)
}

// answeredAs is answered with a media type, and with or without gzip.
func answeredAs(t *testing.T, path, mediaType, body string, compressed bool, o recording.Options) (*bytes.Buffer, recording.Stats) {
	t.Helper()
	header, sent := http.Header{"Content-Type": {mediaType}}, body
	if compressed {
		var b bytes.Buffer
		gz := gzip.NewWriter(&b)
		_, _ = gz.Write([]byte(body)) // a buffer takes all
		require.NoError(t, gz.Close())
		header.Set("Content-Encoding", "gzip")
		sent = b.String()
	}
	var file bytes.Buffer
	r := must.Get(recording.New(&file, o))(t)
	rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(sent)),
		}, nil
	}))
	req := must.Get(http.NewRequest(http.MethodGet, "https://server"+path, nil))(t)
	resp := must.Get(rt.RoundTrip(req))(t)
	got := must.Get(io.ReadAll(resp.Body))(t)
	if resp.Header.Get("Content-Encoding") == "" { // the recorder may have decompressed it
		sent = body
	}
	require.Equal(t, sent, string(got), "the client gets the answer")
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
				require.Contains(t, payloads(file), `"data":{"p":"`+recording.Mark, path+query)
				require.NotContains(t, payloads(file), "top-secret", "%s: %s", path+query, body)
				require.Zero(t, stats.Lost)
			}
		}
	}
}

// TestWhatHasNotTheFormOfAListShowsNoSecret records answers that no API server sends, as a broken proxy may. What has
// not the known form is replaced by hashes, or the stream ends as lost.
func TestWhatHasNotTheFormOfAListShowsNoSecret(t *testing.T) {
	const secret = `{"kind":"Secret","metadata":{"name":"s"},"data":{"p":"top-secret"}}`
	for name, c := range map[string]struct {
		body string
		lost bool
	}{
		"an object":                       {secret, false},
		"an array":                        {"[" + secret + "]", true},
		"an array of arrays":              {"[[" + secret + "]]", true},
		"a text":                          {`"top-secret"`, true},
		"a word":                          {`top-secret`, true},
		"a broken object":                 {`{"data":{"p":"top-secret"`, false},
		"a broken list":                   {`{"items":[{"data":{"p":"top-secret"}}`, false},
		"no comma":                        {`{"items":[{"kind":"Secret" "data":{"p":"top-secret"}}]}`, true},
		"a word in a list":                {`{"kind":top-secret,"items":[]}`, true},
		"a word in a Secret":              {`{"items":[{"type":top-secret}]}`, true},
		"YAML":                            {"kind: SecretList\nitems:\n- data: {p: top-secret}\n", true},
		"protobuf":                        {"k8s\x00\x0a\x08SecretList\x12\x0atop-secret", true},
		"items that are an object":        {`{"items":{"a":` + secret + `}}`, true},
		"items that are texts":            {`{"items":["top-secret"]}`, true},
		"a member beside items":           {`{"items":[],"data":{"p":"top-secret"},"extra":["top-secret"]}`, false},
		"a member beside object":          {`{"type":"ADDED","object":{},"old":` + secret + `,"note":"top-secret"}`, false},
		"the object of a frame in a list": {`{"type":"ADDED","object":[` + secret + `]}`, true},
		"a list in a frame":               {`{"type":"ADDED","object":{"items":[` + secret + `]}}`, false},
		"Data":                            {`{"items":[{"Data":{"p":"top-secret"},"STRINGDATA":{"p":"top-secret"}}]}`, false},
		"Items and Object":                {`{"Items":[` + secret + `],"OBJECT":` + secret + `}`, false},
		"annotations in another case":     {`{"items":[{"Metadata":{"Annotations":{"p":"top-secret"}}}]}`, false},
		"a field of no version":           {`{"items":[{"spec":{"p":"top-secret"},"note":"top-secret"}]}`, false},
		"an object in a label":            {`{"items":[{"metadata":{"labels":{"a":{"b":"top-secret"}}}}]}`, false},
		"an object as the name":           {`{"items":[{"metadata":{"name":["top-secret"]}}]}`, false},
		"the message of an error":         {`{"type":"ERROR","object":{"kind":"Status","code":410,"message":"top-secret"}}`, false},
		"the metadata of a list":          {`{"metadata":{"annotations":{"a":"top-secret"}},"items":[]}`, false},
	} {
		for _, query := range []string{"", "?watch=true"} {
			t.Run(name+query, func(t *testing.T) {
				file, stats := answered(t, "/api/v1/secrets"+query, c.body+"\n", recording.Options{})
				require.NotContains(t, payloads(file), "top-secret")
				require.Equal(t, c.lost, stats.Lost == 1, "the recording says what is missing")
			})
		}
	}
}

// TestTheKnownFormOfASecretStays keeps what selects and identifies a Secret, and what an error says to a program.
func TestTheKnownFormOfASecretStays(t *testing.T) {
	const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"7",` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"},"ownerReferences":[{"kind":"A","name":"o"}]},"type":"Opaque","immutable":true}`
	for _, body := range []string{
		`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"c"},"items":[` + secret + `]}`,
		`{"type":"ADDED","object":` + secret + `}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`,
	} {
		file, stats := answered(t, "/api/v1/secrets?watch=true", body+"\n", recording.Options{})
		require.Contains(t, payloads(file), body)
		require.Zero(t, stats.Lost)
	}
}

// FuzzNoSecretIsWritten puts a value into each place of an answer about Secrets that may have one, and damages the
// answer. The value is nowhere in the file, whatever the encoding.
func FuzzNoSecretIsWritten(f *testing.F) {
	f.Add(`{"items":[{"data":{"p":"#"}}]}`, 0, byte(0), false)
	f.Add(`{"type":"ADDED","object":{"Data":{"p":"#"}},"old":{"a":["#"]}}`, 3, byte('"'), true)
	f.Add(`{"items":[{"type":"a","data":{"p":"#"},"metadata":{"name":"n","x":["#"]}}],"kind":"List"}`, 0, byte(0), true)
	f.Add(`[{"data":"#"},#]`, 5, byte('{'), true)
	f.Add("k8s\x00#", 1, byte('k'), false)
	f.Fuzz(func(t *testing.T, body string, at int, damage byte, compressed bool) {
		const needle = "7777needle7777"
		body = strings.ReplaceAll(strings.ReplaceAll(body, needle, ""), "#", needle)
		if at >= 0 && at < len(body) && damage != 0 {
			body = body[:at] + string(rune(damage)) + body[at:]
		}
		if knownPlain.MatchString(body) {
			t.Skip()
		}
		o := recording.Options{}
		for _, kind := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor"} {
			for _, query := range []string{"", "?watch=true"} {
				file, _ := answeredAs(t, "/api/v1/secrets"+query, kind, body, compressed && query == "", o)
				require.NotContains(t, payloads(file), needle, "%q", body)
			}
		}
	})
}

// knownPlain finds the value in the name of a member, and behind a name whose values stay. It does not read escapes.
var knownPlain = regexp.MustCompile(`[{,]\s*"[^",]*7777needle7777|[^\\]"(kind|apiVersion|type|immutable|name|namespace|uid|` +
	`resourceVersion|\w+Timestamp|deletionGracePeriodSeconds|generat\w+|status|reason|code|continue|remainingItemCount|selfLink)"` +
	`[^"]*"[^"]*7777needle7777|labels|ownerReferences|\\u`)

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
			require.Contains(t, payloads(file), `"token":"`+hidden+`"`, "the value in the object")
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
	require.Contains(t, payloads(file), `"name":"one"`)
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
