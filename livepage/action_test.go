package livepage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/livepage"
)

func body(text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Type", "application/json")
	}
}

func TestActions(t *testing.T) {
	p := newPage(t, livepage.Options{})
	require.Contains(t, send(p, true, http.MethodGet, "/state").Body.String(), `"lab":false`)
	require.JSONEq(t, `[]`, send(p, true, http.MethodGet, "/actions").Body.String())
	var got map[string]string
	p.Offer(livepage.Action{
		Name: "grind", Group: "Mill", Label: "Grind", Help: "Makes flour.",
		Fields: []livepage.Field{{Name: "grain", Label: "Grain", Value: "rye"}, {Name: "sacks", Label: "Sacks", Value: "1"}},
		Do: func(_ context.Context, values map[string]string) (string, error) {
			if got = values; values["sacks"] == "0" {
				return "", errors.New("no grain")
			}
			return "flour", nil
		},
	})
	require.Contains(t, send(p, true, http.MethodGet, "/state").Body.String(), `"lab":true`)
	require.JSONEq(t, `[{"name": "grind", "group": "Mill", "label": "Grind", "help": "Makes flour.", "fields": [
		{"name": "grain", "label": "Grain", "value": "rye"}, {"name": "sacks", "label": "Sacks", "value": "1"}]}]`,
		send(p, true, http.MethodGet, "/actions").Body.String())
	w := send(p, true, http.MethodPost, "/actions/grind", body(`{"sacks": "2", "other": "3"}`))
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `{"said": "flour"}`, w.Body.String())
	require.Equal(t, map[string]string{"grain": "rye", "sacks": "2"}, got)
	got = nil
	for _, c := range []struct {
		path, body string
		code       int
		says       string
	}{
		{"/actions/grind", `{"sacks": "0"}`, 422, "no grain"},
		{"/actions/grind", `{"sacks": 0}`, 400, "not a JSON object of texts"},
		{"/actions/grind", strings.Repeat(" ", 100<<10), 400, "too large"},
		{"/actions/bake", `{}`, 404, "no action of this name"},
	} {
		w := send(p, true, http.MethodPost, c.path, body(c.body))
		require.Equal(t, c.code, w.Code)
		require.Contains(t, w.Body.String(), c.says)
	}
	got = nil
	foreign := send(p, true, http.MethodPost, "/actions/grind", body(`{}`), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
	require.Equal(t, 403, foreign.Code)
	require.Nil(t, got)
	do := func(context.Context, map[string]string) (string, error) { return "", nil }
	for _, wrong := range []livepage.Action{{Name: "grind", Do: do}, {Do: do}, {Name: "bake"}} {
		require.Panics(t, func() { p.Offer(wrong) })
	}
}

// TestActionsNeedDebug has actions, and a handler without debug.
func TestActionsNeedDebug(t *testing.T) {
	p := newPage(t, livepage.Options{})
	p.Offer(livepage.Action{Name: "grind", Label: "secret", Do: func(context.Context, map[string]string) (string, error) {
		t.Error("it ran")
		return "", nil
	}})
	require.Contains(t, send(p, false, http.MethodGet, "/state").Body.String(), `"lab":false`)
	for method, path := range map[string]string{http.MethodGet: "/actions", http.MethodPost: "/actions/grind"} {
		w := send(p, false, method, path, body(`{}`))
		require.Equal(t, 403, w.Code)
		require.Contains(t, w.Body.String(), "livepage: this page has no actions; see AdminOptions.Debug")
	}
}

// TestSlowClientOfActions reads the list of actions slowly. Meanwhile, others use the page.
func TestSlowClientOfActions(t *testing.T) {
	p := newPage(t, livepage.Options{})
	p.Offer(livepage.Action{Name: "grind", Do: func(context.Context, map[string]string) (string, error) { return "", nil }})
	r := httptest.NewRequest(http.MethodGet, "/actions", nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8081", "127.0.0.1:40000"
	slow := slowWriter{httptest.NewRecorder(), func() { _ = look(t, p, true) }}
	p.Handler(true).ServeHTTP(slow, r)
	require.Contains(t, slow.Body.String(), "grind")
}

// slowWriter does something during each write.
type slowWriter struct {
	*httptest.ResponseRecorder
	during func()
}

func (w slowWriter) Write(b []byte) (int, error) {
	w.during()
	return w.ResponseRecorder.Write(b)
}
