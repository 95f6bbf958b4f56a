package manager_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/manager"
)

func passes(context.Context) error { return nil }

func fails(text string) manager.Check {
	return func(context.Context) error { return errors.New(text) }
}

// ask sends a GET to a handler, and returns the code and the text.
func ask(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestChecksAnswerAsKubernetesDoes(t *testing.T) {
	good, bad, open := manager.NewChecks("healthz", false, zap.NewNop()), manager.NewChecks("livez", false, zap.NewNop()),
		manager.NewChecks("readyz", true, zap.NewNop())
	for _, c := range []*manager.Checks{good, bad, open} {
		require.NoError(t, c.Add("db", passes))
	}
	for _, c := range []*manager.Checks{bad, open} {
		require.NoError(t, c.Add("disk/root", fails("full of\nsecrets")))
	}
	for _, c := range []struct {
		checks *manager.Checks
		path   string
		code   int
		text   string
	}{
		{good, "/healthz", 200, "ok"},
		{good, "/healthz/", 200, "ok"},
		{good, "/healthz?verbose", 200, "[+]ping ok\n[+]db ok\nhealthz check passed\n"},
		{good, "/healthz?verbose&exclude=db", 200, "[+]ping ok\n[+]db excluded: ok\nhealthz check passed\n"},
		{good, "/healthz?verbose=1&exclude=x&exclude=db", 200, "[+]ping ok\n[+]db excluded: ok\nwarn: some health checks cannot be excluded: no matches for [\"x\"]\nhealthz check passed\n"},
		{good, "/healthz/ping", 200, "ok"},
		{good, "/healthz/nobody", 404, "404 page not found\n"},
		{bad, "/livez", 500, "[+]ping ok\n[+]db ok\n[-]disk/root failed: reason withheld\nlivez check failed\n"},
		{bad, "/livez?exclude=disk/root", 200, "ok"},
		{bad, "/livez/disk/root", 500, "internal server error: reason withheld"},
		{bad, "/livez/db", 200, "ok"},
		{open, "/readyz", 500, "[+]ping ok\n[+]db ok\n[-]disk/root failed: full of; secrets\nreadyz check failed\n"},
		{open, "/readyz/disk/root", 500, "internal server error: full of; secrets"},
	} {
		code, text := ask(c.checks, c.path)
		require.Equal(t, c.code, code, c.path)
		require.Equal(t, c.text, text, c.path)
	}
	w := httptest.NewRecorder()
	bad.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
}

func TestChecksComeAndGo(t *testing.T) {
	c := manager.NewChecks("healthz", false, zap.NewNop())
	require.NoError(t, c.Add("db", fails("down")))
	require.ErrorIs(t, c.Add("db", passes), manager.ErrNameTaken)
	code, _ := ask(c, "/healthz")
	require.Equal(t, 500, code)
	c.Remove("db")
	c.Remove("db")
	code, _ = ask(c, "/healthz")
	require.Equal(t, 200, code)
	require.NoError(t, c.Add("db", passes))
	require.Panics(t, func() { _ = c.Add("", passes) })
	require.Panics(t, func() { _ = c.Add("x", nil) })
}

// TestChecksAreLoggedWhenTheyChange asks often, as a kubelet does. A failure with a changing text is logged once a
// minute.
func TestChecksAreLoggedWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, seen := observer.New(zap.InfoLevel)
		c := manager.NewChecks("healthz", false, zap.New(logs))
		var state error
		require.NoError(t, c.Add("db", func(context.Context) error {
			if state != nil && state.Error() == "ouch" {
				panic(state)
			}
			return state
		}))
		var lines []string
		for _, text := range []string{"", "down 1", "down 1", "down 2", "", "", "down 3", "down 4", "down 5", "down 6", "down 7", "down 8", "ouch"} {
			if state = nil; text != "" {
				state = errors.New(text)
			}
			code, _ := ask(c, "/healthz")
			require.Equal(t, text == "", code == 200)
			for _, entry := range seen.TakeAll() {
				line := entry.Message
				if err, ok := entry.ContextMap()["err"]; ok {
					line += ": " + err.(string)
				}
				lines = append(lines, line)
			}
			<-time.After(20 * time.Second)
		}
		require.Equal(t, []string{
			"check failed: down 1", "check passes again", "check failed: down 3", "check failed: down 6", "check failed: panic: ouch [recovered]",
		}, lines)
	})
}

// TestReadyz asks a manager in each of its states.
func TestReadyz(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		forbidden := s.Server.Inject(failConfigMaps(http.StatusForbidden))
		client := s.Connect(nil)
		var j journal
		m := newManager(t, manager.Options{ShowReasons: true})
		cache := j.newSlow("cache")
		place(t, m, manager.Caches, cache)
		require.NoError(t, m.Add(mapInformer(client)))
		worker := j.newPart("worker")
		worker.linger = time.Second
		require.NoError(t, m.Add(worker))
		b := run(t, m)
		_, text := ask(m.Readyz(), "/readyz")
		require.Regexp(t, `^\[\+\]ping ok
\[-\]informer-sync failed: cache: not synced; configmaps: not synced, waiting, 0 objects received, after a failure: list configmaps: .*
\[\+\]shutdown ok
readyz check failed
$`, text)
		forbidden.Remove()
		<-time.After(time.Minute)
		_, text = ask(m.Readyz(), "/readyz/informer-sync")
		require.Equal(t, "internal server error: cache: not synced", text)
		close(cache.synced)
		synctest.Wait()
		code, _ := ask(m.Readyz(), "/readyz")
		require.Equal(t, 200, code)

		b.cancel()
		synctest.Wait()
		_, text = ask(m.Readyz(), "/readyz/shutdown")
		require.Equal(t, "internal server error: manager: ending", text)
		for _, c := range []*manager.Checks{m.Healthz(), m.Livez()} {
			code, _ = ask(c, "/")
			require.Equal(t, 200, code, "a manager that ends is healthy")
		}
		require.NoError(t, <-b.ended)
	})
}

// checkedVote is an Elector with a health check.
type checkedVote struct {
	*vote
	tolerance *time.Duration
}

func (v checkedVote) Check(tolerance time.Duration) error {
	*v.tolerance = tolerance
	return errors.New("stale")
}

func TestElectionIsChecked(t *testing.T) {
	var tolerance time.Duration
	for given, want := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Minute: time.Minute} {
		m := newManager(t, manager.Options{Elector: checkedVote{new(journal).newVote(), &tolerance}, ElectionTolerance: given})
		code, _ := ask(m.Healthz(), "/healthz/election")
		require.Equal(t, 500, code)
		code, _ = ask(m.Livez(), "/livez/election")
		require.Equal(t, 500, code)
		require.Equal(t, want, tolerance)
		code, _ = ask(m.Readyz(), "/readyz/election")
		require.Equal(t, 404, code)
	}
}
