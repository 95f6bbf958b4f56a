package livepage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/observe/livepage"
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
	p.ShowHeld(func() []livepage.Held { return []livepage.Held{{What: "secret"}} })
	p.Guide(livepage.Walkthrough{
		Title:   "secret",
		Restart: func(context.Context) error { t.Error("it began"); return nil },
		Printed: func() []string { return []string{"secret"} },
	})
	state := send(p, false, http.MethodGet, "/state").Body.String()
	require.Contains(t, state, `"lab":false`)
	require.NotContains(t, state, "secret")
	for path, method := range map[string]string{
		"/actions": http.MethodGet, "/actions/grind": http.MethodPost, "/walkthrough": http.MethodGet, "/walkthrough/next": http.MethodPost,
	} {
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

func TestHeld(t *testing.T) {
	p := newPage(t, livepage.Options{})
	require.Contains(t, send(p, true, http.MethodGet, "/state").Body.String(), `"held":[]`)
	p.ShowHeld(func() []livepage.Held {
		return []livepage.Held{{Stage: livepage.StageWorkers, What: "the key a/b", Since: time.UnixMilli(1700)}}
	})
	require.Contains(t, send(p, true, http.MethodGet, "/state").Body.String(), `"held":[{"stage":"workers","what":"the key a/b","since":1700}]`)
}

func TestWalkthrough(t *testing.T) {
	p := newPage(t, livepage.Options{})
	require.Equal(t, 204, send(p, true, http.MethodGet, "/walkthrough").Code)
	var printed []string
	restarts := 0
	var broken error
	p.Guide(livepage.Walkthrough{
		Title: "Flour", Text: "From *grain*.",
		Steps: []livepage.Step{
			{Title: "Grind", Text: "It is ground.", Do: func(context.Context) error {
				printed = append(printed, "flour")
				return broken
			}},
			{Title: "Bake", Text: "It is baked."},
		},
		Restart: func(context.Context) error {
			restarts++
			printed = nil
			return broken
		},
		Printed: func() []string { return printed },
	})
	step := func(first string) string {
		return `[{"title": "Grind", "text": "It is ground.", "printed": "` + first + `"}, {"title": "Bake", "text": "It is baked.", "printed": ""}]`
	}
	state := func(taken, first string) string {
		return `{"title": "Flour", "text": "From *grain*.", "taken": ` + taken + `, "steps": ` + step(first) + `}`
	}
	require.JSONEq(t, state("0", ""), send(p, true, http.MethodGet, "/walkthrough").Body.String())
	for _, c := range [][2]string{{"1", "flour"}, {"2", "flour"}, {"2", "flour"}} {
		w := send(p, true, http.MethodPost, "/walkthrough/next", body(`{}`))
		require.Equal(t, 200, w.Code)
		require.JSONEq(t, state(c[0], c[1]), w.Body.String())
	}
	require.Equal(t, 1, restarts)
	require.JSONEq(t, state("0", ""), send(p, true, http.MethodPost, "/walkthrough/restart", body(`{}`)).Body.String())
	require.Equal(t, 404, send(p, true, http.MethodPost, "/walkthrough/back", body(`{}`)).Code)
	broken = errors.New("no wind")
	for _, move := range []string{"next", "restart"} {
		w := send(p, true, http.MethodPost, "/walkthrough/"+move, body(`{}`))
		require.Equal(t, 422, w.Code)
		require.Contains(t, w.Body.String(), "no wind")
	}
	foreign := send(p, true, http.MethodPost, "/walkthrough/next", body(`{}`), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
	require.Equal(t, 403, foreign.Code)
	require.Panics(t, func() { p.Guide(livepage.Walkthrough{}) })
}
