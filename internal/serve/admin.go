package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

// maxBody limits what a request may send. A state is the largest.
const maxBody = 256 << 20

const help = `GET    /faults            the faults, with their numbers
POST   /faults            inject faults: one a line, or a plan in YAML, whose seed does not count
DELETE /faults            remove all faults
DELETE /faults/NUMBER     remove one
GET    /plan              the faults as a plan for --faults
GET    /requests          the requests since the last DELETE, oldest first
DELETE /requests          forget them
GET    /watches           the open watches
POST   /disconnect        reset all watches
POST   /compact           forget the history: older versions get 410
POST   /restart           end all connections, and begin again with the same state
GET    /snapshots         the names and versions of the snapshots
POST   /snapshots/NAME    take a snapshot, for which the faults "stale NAME" and "restore NAME" wait
GET    /state             the whole state as a List in JSON
PUT    /state             replace the state by a List in JSON or YAML
POST   /state/save        write the file of --data
`

// clustersHelp is the part of a server that has other clusters.
const clustersHelp = `
GET    /clusters                  the clusters beside this one
PUT    /clusters/NAME             create a cluster: a fork of this one, or with ?from=OTHER of another one
GET    /clusters/NAME             its name, its parent and the URL of its API
GET    /clusters/NAME/kubeconfig  a kubeconfig for it
DELETE /clusters/NAME             end it and forget its state
*      /clusters/NAME/...         the requests above for this cluster, except /restart and /state/save
`

// adminServer returns the admin endpoint and its listener, or nil without the flag.
func (p *process) adminServer() (*manager.Server, net.Listener, error) {
	if p.admin == "" {
		return nil, nil, nil
	}
	l, err := net.Listen("tcp", p.admin)
	if err != nil {
		return nil, nil, fmt.Errorf("--admin: %w", err)
	}
	server, err := manager.NewServer("admin", manager.ServerOptions{Listener: l, Handler: onlyLoopback(p.adminHandler()), SameOrigin: true})
	return server, l, err
}

// onlyLoopback refuses clients on other machines, in case that the system forwards their connections to loopback.
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().Unmap().IsLoopback() {
			http.Error(w, "the admin endpoint answers only this machine", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// action answers a request of the admin endpoint. A nil result is an empty answer.
type action func(r *http.Request) (result any, err error)

// actions are the requests for each cluster.
func (s *served) actions() map[string]action {
	return map[string]action{
		"GET /faults":            func(*http.Request) (any, error) { return s.active.List(), nil },
		"POST /faults":           s.inject,
		"DELETE /faults":         s.heal,
		"DELETE /faults/{id}":    s.remove,
		"GET /plan":              func(*http.Request) (any, error) { return s.active.Plan().YAML(), nil },
		"GET /requests":          func(*http.Request) (any, error) { return requestsOf(s.Server.Requests()), nil },
		"DELETE /requests":       s.forget,
		"GET /watches":           func(*http.Request) (any, error) { return requestsOf(s.Server.Watches()), nil },
		"POST /disconnect":       s.once(faults.Disconnect{Abrupt: true}),
		"POST /compact":          s.once(faults.Compact{}),
		"GET /snapshots":         func(*http.Request) (any, error) { return s.active.Snapshots(), nil },
		"POST /snapshots/{name}": s.takeSnapshot,
		"GET /state":             func(*http.Request) (any, error) { return json.RawMessage(s.Server.Dump()), nil },
		"PUT /state":             s.loadState,
	}
}

func (p *process) adminHandler() http.Handler {
	ofClusters, text := map[string]action{}, help
	if p.Fork != nil {
		ofClusters, text = p.clusters.actions(), help+clustersHelp
	}
	mux := muxOf(p.actions(), ofClusters, map[string]action{
		"GET /{$}":         func(*http.Request) (any, error) { return text, nil },
		"POST /restart":    p.restartNow,
		"POST /state/save": p.saveState,
	})
	if p.Fork != nil {
		// A mux for each request, because one for each cluster takes 6 KB.
		mux.HandleFunc(clustersPath+"{name}/", func(w http.ResponseWriter, r *http.Request) {
			if err := p.clusters.forward(w, r, r.PathValue("name"), func(one *forked) http.Handler { return muxOf(one.actions()) }); err != nil {
				refuse(w, err)
			}
		})
	}
	return mux
}

func muxOf(all ...map[string]action) *http.ServeMux {
	mux := http.NewServeMux()
	for _, actions := range all {
		for pattern, act := range actions {
			mux.Handle(pattern, act)
		}
	}
	return mux
}

// failure is an error with the code of its answer.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func (act action) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := act(r)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, result)
}

func refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	var f *failure
	if errors.As(err, &f) {
		code = f.code
	}
	http.Error(w, visible.Text(err.Error()), code)
}

// answer writes a text as it is, and other values as JSON. A client may print them to a terminal, so the names of
// objects and snapshots are escaped. An error means that the client has gone.
func answer(w http.ResponseWriter, result any) {
	out := visible.Writer(w)
	switch v := result.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case string:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(out, v)
	case []byte: // a plan, which a client may post again
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(v)
	case json.RawMessage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(v)
	default:
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		_ = e.Encode(v)
	}
}

// isPlan matches plans in YAML or JSON: a field stands at the start of a line, or the text is an object. No fault does.
var isPlan = regexp.MustCompile(`^\s*\{|(?m)^["']?(seed|faults)["']?\s*:`)

// inject reads a plan in YAML, whose seed is not used, or a fault in each line.
func (s *served) inject(r *http.Request) (any, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, faultplan.MaxPlan+1))
	if err != nil {
		return nil, err
	}
	if len(body) > faultplan.MaxPlan {
		return nil, &failure{http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", faultplan.MaxPlan)}
	}
	text := string(body)
	var all []faultplan.Fault
	if isPlan.MatchString(text) {
		plan, err := faultplan.ParsePlan(body)
		if err != nil {
			return nil, err
		}
		all = plan.Faults
	} else {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			f, err := faultplan.Parse(line)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the body has no fault; write one a line, such as: watch pods: drop 10%")
	}
	return s.active.InjectAll(all)
}

func (s *served) heal(*http.Request) (any, error) {
	s.active.RemoveAll()
	return nil, nil
}

func (s *served) remove(r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !s.active.Remove(id) {
		return nil, &failure{http.StatusNotFound, fmt.Errorf("there is no fault %s", r.PathValue("id"))}
	}
	return nil, nil
}

func (s *served) forget(*http.Request) (any, error) {
	s.Server.ForgetRequests()
	return nil, nil
}

// once returns an action that injects a fault that happens once.
func (s *served) once(e faults.Effect) action {
	return func(*http.Request) (any, error) {
		s.Server.Inject(faults.Fault{Effect: e}).Remove()
		return nil, nil
	}
}

func (p *process) restartNow(r *http.Request) (any, error) {
	done := make(chan error, 1)
	select {
	case p.restart <- done:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err := <-done; err != nil {
		return nil, &failure{http.StatusInternalServerError, err}
	}
	return nil, nil
}

func (s *served) takeSnapshot(r *http.Request) (any, error) {
	return map[string]string{r.PathValue("name"): s.active.TakeSnapshot(r.PathValue("name")).ResourceVersion()}, nil
}

func (s *served) loadState(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return nil, s.Server.Load(body)
}

func (p *process) saveState(*http.Request) (any, error) {
	if p.data == "" {
		return nil, &failure{http.StatusConflict, errors.New("the server was started without --data")}
	}
	if err := p.save(p.Server); err != nil {
		return nil, &failure{http.StatusInternalServerError, err}
	}
	return nil, nil
}

// request is an entry of the request log in JSON.
type request struct {
	At        string `json:"at"`
	Verb      string `json:"verb"`
	Path      string `json:"path"`
	Query     string `json:"query,omitempty"`
	User      string `json:"user,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

func requestsOf(all []testserver.Request) []request {
	out := []request{}
	for _, r := range all {
		out = append(out, request{
			At: r.At.UTC().Format("2006-01-02T15:04:05.000000Z"), Verb: r.Verb, Path: r.Path, Query: r.Query.Encode(),
			User: r.User, UserAgent: r.UserAgent,
		})
	}
	return out
}
