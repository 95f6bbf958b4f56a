package livepage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/workqueue"
)

// state is the answer that the browser polls. Times are milliseconds since 1970, or zero. Counters grow from the start
// of the program, and measurements from the first look; the browser computes rates and quantiles from two answers.
type state struct {
	Program     string            `json:"program"`
	Now         int64             `json:"now"`
	Started     int64             `json:"started"`
	Debug       bool              `json:"debug"`
	Lab         bool              `json:"lab"`  // there are actions; with debug
	Heap        uint64            `json:"heap"` // bytes of live and not yet collected objects
	Goroutines  uint64            `json:"goroutines"`
	Leader      *leaderState      `json:"leader,omitempty"`
	Electors    []electorState    `json:"electors"`
	Shards      []shardState      `json:"shards"`
	Held        []heldState       `json:"held"` // with debug
	Health      []healthState     `json:"health"`
	Informers   []informerState   `json:"informers"`
	Controllers []controllerState `json:"controllers"`
	Queues      []queueState      `json:"queues"`
	Gates       []gateState       `json:"gates"`
}

// leaderState says who leads. Without an election, a program leads when all its groups have started.
type leaderState struct {
	Leads    bool   `json:"leads"`
	Election bool   `json:"election"`
	Lease    string `json:"lease,omitempty"`
	Leader   string `json:"leader,omitempty"`
	Identity string `json:"identity,omitempty"`
	Error    string `json:"error,omitempty"` // of the last attempt; with debug
}

// electorState is a replica that campaigns for a lease. A process has one, except in experiments. The names and the
// lease are there with debug.
type electorState struct {
	Name     string `json:"name"`
	Leads    bool   `json:"leads"`
	Lease    string `json:"lease,omitempty"`
	Leader   string `json:"leader,omitempty"` // at the last request; empty if the lease was free
	Identity string `json:"identity,omitempty"`
	Error    string `json:"error,omitempty"` // of the last attempt
}

// healthState is the answer of one set of checks.
type healthState struct {
	Path   string       `json:"path"`
	OK     bool         `json:"ok"`
	Checks []checkState `json:"checks"`
}

type checkState struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"`
}

type informerState struct {
	Name        string             `json:"name"`
	Resource    string             `json:"resource"`
	Phase       reflector.Phase    `json:"phase"`
	Running     bool               `json:"running"`
	Synced      bool               `json:"synced"`
	Objects     int                `json:"objects"`
	Bytes       int64              `json:"bytes"`   // of all objects in JSON, by the mean of the sample
	Sampled     int                `json:"sampled"` // objects in the sample
	Version     string             `json:"version"`
	Depth       int                `json:"depth"`     // objects whose changes wait in the DeltaFIFO
	Received    int                `json:"received"`  // objects of the list in progress
	Remaining   int64              `json:"remaining"` // objects that will follow, or -1
	HeardAt     int64              `json:"heardAt"`
	NextAttempt int64              `json:"nextAttempt"`
	Attempt     int                `json:"attempt"`
	Failing     bool               `json:"failing"`
	Error       string             `json:"error,omitempty"` // with debug
	LastErrorAt int64              `json:"lastErrorAt"`
	Undecodable int                `json:"undecodable"`
	Counters    reflector.Counters `json:"counters"`
	Batches     uint64             `json:"batches"`
	Changes     uint64             `json:"changes"`
	Stored      counts             `json:"stored"`
	Handlers    []handlerState     `json:"handlers"`
	Shard       droppedState       `json:"shard"`
	ScopeCount  int                `json:"scopeCount"`
	Scopes      []scopeState       `json:"scopes"` // with debug, at most mostScopes, those with a problem first
}

type handlerState struct {
	Name       string `json:"name"`
	Synced     bool   `json:"synced"`
	Pending    int    `json:"pending"`
	Panics     int64  `json:"panics"`
	StuckSince int64  `json:"stuckSince"`
}

type controllerState struct {
	Name     string           `json:"name"`
	Stats    controller.Stats `json:"stats"`
	Added    counts           `json:"added"`
	Waited   counts           `json:"waited"`
	Worked   counts           `json:"worked"`
	Answered counts           `json:"answered"`
	Running  []runningState   `json:"running"`  // with debug
	Unsynced []unsyncedSource `json:"unsynced"` // with debug
}

// runningState is a worker's reconcile. The names are those of /debug/controllers/.
type runningState struct {
	Key           string
	ID            string
	Started       time.Time
	Attempt       int
	Causes        []workqueue.Cause
	CausesOmitted int
}

type unsyncedSource struct{ Name, NotSynced string }

type queueState struct {
	Name  string          `json:"name"`
	Stats workqueue.Stats `json:"stats"`
}

type gateState struct {
	Name  string                 `json:"name"`
	Stats cachedclient.GateStats `json:"stats"`
}

// members is what the page shows at one moment.
type members struct {
	managed     managed
	informers   []*shownInformer
	controllers []*shownController
	queues      []shown[queue]
	electors    []shown[elector]
	shards      []shown[sharded]
	gates       []shown[gate]
	lab         bool
	held        func() []Held
}

// look notes that somebody looks, and returns what the page shows.
func (p *Page) look() members {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropStopped()
	p.viewer.look()
	return members{
		p.managed, slices.Clone(p.informers), slices.Clone(p.controllers),
		slices.Clone(p.queues), slices.Clone(p.electors), slices.Clone(p.shards), slices.Clone(p.gates), len(p.actions) > 0, p.held,
	}
}

// state returns the answer for one poll. It holds no lock while it calls the parts of the program.
func (p *Page) state(r *http.Request, debug bool) state {
	m := p.look()
	health := p.health(r, m, debug) // before the time, because checks may be slow: rates need the time of the counters
	s := state{
		Program: p.o.Program, Now: time.Now().UnixMilli(), Started: p.started.UnixMilli(), Debug: debug, Lab: m.lab && debug,
		Leader: m.leader(debug), Health: health, Electors: m.campaigns(debug), Shards: []shardState{}, Held: []heldState{},
		Informers: []informerState{}, Controllers: []controllerState{}, Queues: []queueState{}, Gates: []gateState{},
	}
	s.Heap, s.Goroutines = process()
	if debug {
		s.Held = heldStates(m.held)
	}
	for _, i := range m.informers {
		s.Informers = append(s.Informers, i.state(debug))
	}
	for _, c := range m.controllers {
		s.Controllers = append(s.Controllers, c.state(r, debug))
	}
	for n, member := range m.shards {
		s.Shards = append(s.Shards, shardStateOf(member, n, debug))
	}
	for _, q := range m.queues {
		s.Queues = append(s.Queues, queueState{q.name, q.part.Stats()})
	}
	for _, g := range m.gates {
		s.Gates = append(s.Gates, gateState{g.name, g.part.Stats()})
	}
	return s
}

func (m members) leader(debug bool) *leaderState {
	switch {
	case len(m.electors) > 0:
		e := m.electors[0].part
		if n := slices.IndexFunc(m.electors, func(s shown[elector]) bool { return s.part.Leading() }); n > 0 {
			e = m.electors[n].part
		}
		s := &leaderState{Leads: e.Leading(), Election: true}
		if debug {
			s.Lease, s.Leader, s.Identity, s.Error = api.FormatKey(e.Lease()), e.Leader(), e.Identity(), attemptError(e)
		}
		return s
	case m.managed != nil:
		return &leaderState{Leads: runstate.IsClosed(m.managed.Elected())}
	}
	return nil
}

// campaigns returns the states of the electors.
func (m members) campaigns(debug bool) []electorState {
	all := []electorState{}
	for n, e := range m.electors {
		s := electorState{Name: fmt.Sprintf("elector %d", n+1), Leads: e.part.Leading()}
		if debug {
			s.Name, s.Identity, s.Lease, s.Leader = e.name, e.part.Identity(), api.FormatKey(e.part.Lease()), e.part.Leader()
			s.Error = attemptError(e.part)
		}
		all = append(all, s)
	}
	return all
}

// attemptError returns the text of the error of an elector's last attempt, if it failed and the elector knows it.
func attemptError(e elector) string {
	if known, ok := e.(interface{ LastError() error }); ok {
		if err := known.LastError(); err != nil {
			return short(err.Error())
		}
	}
	return ""
}

// checkEvery is how often the page runs the checks of a manager at most. Checks are code of the user, which a probe
// calls every few seconds.
const checkEvery = 5 * time.Second

// checkLimit ends the context of one set of checks. Three sets take less time than a browser waits for an answer.
const checkLimit = 2 * time.Second

// health returns the results of the manager's checks. One request runs them; meanwhile, others get the last results.
func (p *Page) health(r *http.Request, m members, debug bool) []healthState {
	if p.beginChecks() {
		p.runChecks(r, m)
	}
	p.checksMu.Lock()
	checked := slices.Clone(p.checked)
	if late := time.Since(p.checkedAt); p.isChecking && late > 3*checkLimit {
		text := fmt.Sprintf("no answer for %s; a check ignores its context", late.Round(time.Second))
		checked = append(checked, healthState{Path: "checks", Checks: []checkState{{Name: "checks", Text: text}}})
	}
	p.checksMu.Unlock()
	bare := []healthState{}
	if debug {
		return append(bare, checked...)
	}
	for _, h := range checked {
		h.Checks = slices.Clone(h.Checks)
		for i := range h.Checks {
			h.Checks[i].Text = ""
		}
		bare = append(bare, h)
	}
	return bare
}

// beginChecks reports whether the checks are due, and no request runs them. The caller then runs them.
func (p *Page) beginChecks() bool {
	p.checksMu.Lock()
	defer p.checksMu.Unlock()
	if p.isChecking || p.checked != nil && time.Since(p.checkedAt) < checkEvery {
		return false
	}
	p.isChecking, p.checkedAt = true, time.Now()
	return true
}

func (p *Page) runChecks(r *http.Request, m members) {
	var checked []healthState
	defer func() { // also after a panic
		p.checksMu.Lock()
		defer p.checksMu.Unlock()
		p.checked, p.isChecking = checked, false
	}()
	checked = m.health(r)
}

// health runs the checks of the manager, as a probe would. The viewer that happens to ask may leave: the checks do not
// get the context of its request.
func (m members) health(r *http.Request) []healthState {
	all := []healthState{}
	if m.managed == nil {
		return all
	}
	sets := map[string]*manager.Checks{"healthz": m.managed.Healthz(), "livez": m.managed.Livez(), "readyz": m.managed.Readyz()}
	for _, path := range slices.Sorted(maps.Keys(sets)) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), checkLimit)
		code, body := ask(r.WithContext(ctx), sets[path], "/"+path+"?verbose")
		cancel()
		h := healthState{Path: path, OK: code == http.StatusOK, Checks: []checkState{}}
		for line := range strings.Lines(string(body)) {
			if c, ok := parseCheck(strings.TrimSpace(line)); ok {
				h.Checks = append(h.Checks, c)
			}
		}
		all = append(all, h)
	}
	return all
}

// parseCheck reads a line like "[+]ping ok" or "[-]name failed: reason".
func parseCheck(line string) (checkState, bool) {
	text, ok := strings.CutPrefix(line, "[+]")
	if !ok {
		var failed bool
		if text, failed = strings.CutPrefix(line, "[-]"); !failed {
			return checkState{}, false
		}
	}
	name, why, _ := strings.Cut(text, " ")
	c := checkState{Name: name, OK: ok}
	if !ok {
		c.Text = why
	}
	return c, true
}

func (s *shownInformer) state(debug bool) informerState {
	status := s.informer.Status()
	r := status.Reflector
	out := informerState{
		Name: s.name, Resource: status.Resource.Plural, Phase: r.Phase, Running: status.Running, Synced: status.Synced,
		Objects: status.Objects, Version: status.ResourceVersion, Depth: status.Depth, Received: r.Objects, Remaining: r.Remaining,
		HeardAt: millis(status.HeardAt), NextAttempt: millis(r.NextAttempt), Attempt: r.Attempt, Failing: r.Err != nil,
		LastErrorAt: millis(r.LastErrorAt), Undecodable: status.Undecodable, Counters: r.Counters,
		Batches: s.batches.batches.Load(), Changes: s.batches.changes.Load(), Stored: s.batches.stored.read(),
		Handlers: []handlerState{}, Shard: dropped(status.Shard, debug), ScopeCount: len(status.Scopes), Scopes: []scopeState{},
	}
	if debug {
		out.Scopes = scopeStates(status.Scopes)
	}
	if sample := s.sample(); sample.n > 0 {
		out.Sampled, out.Bytes = sample.n, int64(sample.bytes)*int64(status.Objects)/int64(sample.n)
	}
	if debug && r.LastError != nil {
		out.Error = r.LastError.Error()
	}
	for _, h := range status.Handlers {
		out.Handlers = append(out.Handlers, handlerState{h.Name, h.Synced, h.Pending, h.Panics, millis(h.StuckSince)})
	}
	return out
}

func (s *shownController) state(r *http.Request, debug bool) controllerState {
	t := &s.times
	out := controllerState{
		Name: s.name, Stats: s.controller.Stats(),
		Added: t.added.read(), Waited: t.waited.read(), Worked: t.worked.read(), Answered: t.answered.read(),
		Running: []runningState{}, Unsynced: []unsyncedSource{},
	}
	if d, ok := s.controller.(manager.Debuggable); ok && debug {
		var shown struct {
			Running []runningState
			Sources []unsyncedSource
		}
		if code, body := ask(r, d.DebugHandler(), "/debug/controllers/"); code == http.StatusOK && json.Unmarshal(body, &shown) == nil {
			out.Running = append(out.Running, shown.Running...)
			out.Unsynced = append(out.Unsynced, shown.Sources...)
		}
	}
	return out
}

// process returns the bytes of the heap and the number of goroutines.
func process() (heap, goroutines uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// executable returns the name of the program.
func executable() string { return filepath.Base(os.Args[0]) }

// ask makes a handler of this process answer a GET of a path.
func ask(r *http.Request, h http.Handler, target string) (code int, body []byte) {
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, target, nil)
	if err != nil {
		return http.StatusBadRequest, nil
	}
	w := &capture{header: http.Header{}, code: http.StatusOK}
	h.ServeHTTP(w, inner)
	return w.code, w.body.Bytes()
}

// capture is a ResponseWriter that stores an answer.
type capture struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header, WriteHeader and Write implement http.ResponseWriter.
func (c *capture) Header() http.Header { return c.header }

func (c *capture) WriteHeader(code int) { c.code = code }

func (c *capture) Write(p []byte) (int, error) { return c.body.Write(p) }
