package manager

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
)

// Check returns an error if something is wrong, and nil otherwise. It gets the context of a request and should end with
// it. Several requests may call it at once. It corresponds to Checker of controller-runtime's healthz.
type Check func(ctx context.Context) error

// Checks is a set of named checks, and an http.Handler that answers like those of Kubernetes: 200 and "ok" if all
// checks pass, otherwise 500 and one line per check. ?verbose always adds the lines, and ?exclude=NAME skips a check.
// /healthz/NAME runs a single check. The set always contains a check "ping" that passes. It corresponds to Handler of
// controller-runtime's healthz, to which no check can be added once it answers.
type Checks struct {
	name        string
	showReasons bool
	log         *zap.Logger

	mu     sync.Mutex // guards the fields below
	checks []*namedCheck
}

type namedCheck struct {
	name  string
	check Check
	fails string // the last logged error; empty if the check passes
	said  time.Time
}

// complainEvery is the time between two log entries of a check that keeps failing with different texts. A text may
// contain a counter.
const complainEvery = time.Minute

// newChecks returns a set with the given name, to be served at /name and below.
func newChecks(name string, showReasons bool, log *zap.Logger) *Checks {
	ping := &namedCheck{name: "ping", check: func(context.Context) error { return nil }}
	return &Checks{name: name, showReasons: showReasons, log: log.With(zap.String("endpoint", name)), checks: []*namedCheck{ping}}
}

// Add adds a check. It may be called at any time. If the name is taken, the error is ErrNameTaken.
func (c *Checks) Add(name string, check Check) error {
	if name == "" || check == nil {
		panic("manager: a check needs a name and a function")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(name) >= 0 {
		return fmt.Errorf("%w: check %q of %s", ErrNameTaken, name, c.name)
	}
	c.checks = append(c.checks, &namedCheck{name: name, check: check})
	return nil
}

// Remove removes a check, if it exists.
func (c *Checks) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.find(name); i >= 0 {
		c.checks = slices.Delete(c.checks, i, i+1)
	}
}

// find returns the index of a check, or -1. The caller holds the lock.
func (c *Checks) find(name string) int {
	return slices.IndexFunc(c.checks, func(n *namedCheck) bool { return n.name == name })
}

// ServeHTTP answers for all checks at /name, and for one check below it.
func (c *Checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	checks := slices.Clone(c.checks)
	c.mu.Unlock()
	if _, name, below := strings.Cut(r.URL.Path, "/"+c.name+"/"); below && name != "" {
		c.serveOne(w, r, checks, name)
		return
	}
	c.serveAll(w, r, checks)
}

func (c *Checks) serveOne(w http.ResponseWriter, r *http.Request, checks []*namedCheck, name string) {
	for _, n := range checks {
		if n.name != name {
			continue
		}
		if err := c.ask(r.Context(), n); err != nil {
			answer(w, http.StatusInternalServerError, "internal server error: "+c.reason(err))
			return
		}
		answer(w, http.StatusOK, "ok")
		return
	}
	http.NotFound(w, r)
}

func (c *Checks) serveAll(w http.ResponseWriter, r *http.Request, checks []*namedCheck) {
	query := r.URL.Query()
	excluded := query["exclude"]
	var lines strings.Builder
	failed := false
	for _, n := range checks {
		if i := slices.Index(excluded, n.name); i >= 0 {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", n.name)
			excluded = slices.Delete(excluded, i, i+1)
		} else if err := c.ask(r.Context(), n); err != nil {
			failed = true
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", n.name, c.reason(err))
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", n.name)
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", excluded)
	}
	switch {
	case failed:
		answer(w, http.StatusInternalServerError, lines.String()+c.name+" check failed\n")
	case query.Has("verbose"):
		answer(w, http.StatusOK, lines.String()+c.name+" check passed\n")
	default:
		answer(w, http.StatusOK, "ok")
	}
}

// reason returns the text of an error for an answer, on one line.
func (c *Checks) reason(err error) string {
	if !c.showReasons {
		return "reason withheld"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// ask runs a check and logs a change of its result.
func (c *Checks) ask(ctx context.Context, n *namedCheck) error {
	err := n.call(ctx)
	switch {
	case !c.isNews(n, err):
	case err == nil:
		c.log.Info("check passes again", zap.String("check", n.name))
	default:
		c.log.Warn("check failed", zap.String("check", n.name), zap.NamedError("err", err))
	}
	return err
}

// isNews records the result of a check and reports whether to log it.
func (c *Checks) isNews(n *namedCheck, err error) bool {
	fails := ""
	if err != nil {
		fails = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if fails == n.fails || fails != "" && n.fails != "" && time.Since(n.said) < complainEvery {
		return false
	}
	n.fails, n.said = fails, time.Now()
	return true
}

// call runs a check and turns a panic into an error.
func (n *namedCheck) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = api.Recovered(p)
		}
	}()
	return n.check(ctx)
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // it fails only if the client is gone
}

// addOwnChecks adds the checks of the manager itself.
func (m *Manager) addOwnChecks() {
	_ = m.readyz.Add("informer-sync", m.checkCaches) // the set is new, and the names are distinct
	_ = m.readyz.Add("shutdown", m.checkEnding)
	elector, ok := m.o.Elector.(CheckedElector)
	if !ok {
		return
	}
	check := func(context.Context) error { return elector.Check(m.o.ElectionTolerance) }
	_ = m.healthz.Add("election", check)
	_ = m.livez.Add("election", check)
}

// checkEnding is a check that fails once the manager is ending, so that load balancers send no new work.
func (m *Manager) checkEnding(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life >= runstate.Ending {
		return errEnding
	}
	return nil
}
