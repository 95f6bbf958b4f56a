package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/quote"
	"github.com/leatproject/leat/testserver/faultplan"
)

const (
	clustersPath = "/clusters/"
	maxQuote     = 80 // of a name in an error, in bytes
	// patience is how long a cluster that ends waits for clients that do not send the rest of a request, or do not
	// read.
	patience = time.Second
)

// isName matches the labels of RFC 1123.
var isName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// clusters are the forks that the admin endpoint creates. The listener of the main cluster serves their API below
// /clusters/NAME. The lock is not held while a request is answered or a cluster is forked, so that clusters do not wait
// for each other.
type clusters struct {
	main   *served
	config apiclient.Config // of a client of the main cluster
	limit  int
	seed   uint64 // of faults

	mu  sync.RWMutex       // guards all
	all map[string]*forked // nil after close
}

// forked is a cluster with a name.
type forked struct {
	*served
	from     string                          // "" for the main cluster
	requests sync.WaitGroup                  // in progress; only clusters.enter adds to it
	atEnd    func(func()) (stop func() bool) // calls a function when the cluster begins to end
	end      func() error                    // returns when all requests and goroutines of the cluster have ended
}

// clusterInfo is a cluster in JSON.
type clusterInfo struct {
	Name   string `json:"name"`
	From   string `json:"from,omitempty"`
	Server string `json:"server"`
}

func (c *clusters) info(name string, one *forked) clusterInfo {
	return clusterInfo{name, one.from, c.config.Host + clustersPath + name}
}

// actions are the requests of the admin endpoint.
func (c *clusters) actions() map[string]action {
	return map[string]action{
		"GET /clusters":                   c.list,
		"GET /clusters/{name}":            c.get,
		"PUT /clusters/{name}":            c.create,
		"DELETE /clusters/{name}":         c.remove,
		"POST /clusters/{name}":           refusePost,
		"/clusters/{name}/{$}":            refuseSlash,
		"GET /clusters/{name}/kubeconfig": c.kubeconfig,
	}
}

func refuseSlash(*http.Request) (any, error) {
	return nil, &failure{http.StatusNotFound, errors.New("the path of a cluster has no slash at its end")}
}

// refusePost answers what a client may try first. http.ServeMux would redirect it.
func refusePost(*http.Request) (any, error) {
	return nil, &failure{http.StatusMethodNotAllowed, errors.New("PUT creates a cluster, and POST does not")}
}

func (c *clusters) list(*http.Request) (any, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := []clusterInfo{}
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		out = append(out, c.info(name, c.all[name]))
	}
	return out, nil
}

func (c *clusters) get(r *http.Request) (any, error) {
	one, err := c.enter(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	defer one.requests.Done()
	return c.info(r.PathValue("name"), one), nil
}

func (c *clusters) kubeconfig(r *http.Request) (any, error) {
	one, err := c.enter(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	defer one.requests.Done()
	config := c.config
	config.Host = c.info(r.PathValue("name"), one).Server
	return kubeconfig.Marshal(config, kubeconfig.DefaultNamespace)
}

// create forks the main cluster, or the one that the parameter names.
func (c *clusters) create(r *http.Request) (any, error) {
	name, parent := r.PathValue("name"), c.main
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: the parameters: %w", quote.Short(name, maxQuote), err)
	}
	if !isName.MatchString(name) {
		return nil, fmt.Errorf("cluster %q: a name has at most 63 characters of a-z, 0-9 and -, and begins and ends with a letter or digit",
			quote.Short(name, maxQuote))
	}
	for key, values := range query {
		if key != "from" || len(values) != 1 || values[0] == "" {
			return nil, fmt.Errorf("cluster %s: the only parameter is from=NAME, and got %q", name, quote.Short(r.URL.RawQuery, maxQuote))
		}
		one, err := c.enter(values[0])
		if err != nil {
			return nil, err
		}
		defer one.requests.Done()
		parent = one.served
	}
	if err := c.add(name, nil); err != nil {
		return nil, err // before the work of a fork
	}
	one := c.start(parent, query.Get("from"))
	if err := c.add(name, one); err != nil {
		_ = one.end() // the other error says more
		return nil, err
	}
	return c.info(name, one), nil
}

// start runs a fork.
func (c *clusters) start(parent *served, from string) *forked {
	backend := parent.Fork()
	out := &forked{served: &served{backend, faultplan.NewActive(backend.Server, c.seed)}, from: from}
	ending, endRequests := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- backend.Run(ctx) }()
	out.atEnd = func(f func()) func() bool { return context.AfterFunc(ending, f) }
	out.end = func() error {
		endRequests()
		out.requests.Wait()
		out.active.Close()
		stop()
		return <-ended
	}
	return out
}

// add adds a cluster. It only checks whether it could, if one is nil.
func (c *clusters) add(name string, one *forked) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.all == nil:
		return &failure{http.StatusServiceUnavailable, errors.New("the server ends")}
	case c.all[name] != nil:
		return &failure{http.StatusConflict, fmt.Errorf("cluster %s exists; delete it first, or choose another name", name)}
	case c.limit == 0:
		return &failure{http.StatusForbidden, fmt.Errorf("cluster %s: --max-clusters 0 allows no other cluster", name)}
	case len(c.all) >= c.limit:
		return &failure{http.StatusForbidden, fmt.Errorf("cluster %s: the limit of --max-clusters %d is reached; delete a cluster first", name, c.limit)}
	}
	if one != nil {
		c.all[name] = one
	}
	return nil
}

// enter returns a cluster, which does not end before the caller calls requests.Done.
func (c *clusters) enter(name string) (*forked, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	one, ok := c.all[name]
	if !ok {
		return nil, &failure{http.StatusNotFound, fmt.Errorf("there is no cluster %q", quote.Short(name, maxQuote))}
	}
	one.requests.Add(1)
	return one, nil
}

func (c *clusters) remove(r *http.Request) (any, error) {
	name := r.PathValue("name")
	one, err := c.enter(name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	mine := c.all[name] == one // and not one that another request has removed
	if mine {
		delete(c.all, name)
	}
	c.mu.Unlock()
	one.requests.Done()
	if !mine {
		return nil, nil
	}
	if err := one.end(); err != nil {
		return nil, &failure{http.StatusInternalServerError, fmt.Errorf("cluster %s: %w", name, err)}
	}
	return nil, nil
}

// close ends all clusters when ctx ends. Later ones are refused.
func (c *clusters) close(ctx context.Context) error {
	<-ctx.Done()
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	var errs []error
	for name, one := range all {
		if err := one.end(); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// middleware answers the requests for the API of the clusters.
func (c *clusters) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, below := strings.CutPrefix(r.URL.Path, clustersPath)
		if !below {
			next.ServeHTTP(w, r)
			return
		}
		name, _, _ := strings.Cut(rest, "/")
		if c.forward(w, r, name, func(one *forked) http.Handler { return one.Server }) == nil {
			return
		}
		status := apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, quote.Short(name, maxQuote)).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(status) // an error means that the client has gone
	})
}

// forward lets a handler of a cluster answer a request below /clusters/NAME. The request ends with the cluster,
// whatever its client does.
func (c *clusters) forward(w http.ResponseWriter, r *http.Request, name string, handler func(*forked) http.Handler) error {
	one, err := c.enter(name)
	if err != nil {
		return err
	}
	defer one.requests.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	deadlines, set := http.NewResponseController(w), make(chan struct{})
	setDeadlines := func(at time.Time) {
		_ = deadlines.SetReadDeadline(at) // fails for a WebSocket, which ends with the context
		_ = deadlines.SetWriteDeadline(at)
	}
	stop := one.atEnd(func() {
		defer close(set)
		cancel()
		setDeadlines(time.Now().Add(patience))
	})
	defer func() {
		if !stop() {
			<-set
			setDeadlines(time.Time{}) // the connection may go on
		}
	}()
	http.StripPrefix(clustersPath+name, handler(one)).ServeHTTP(w, r.WithContext(ctx))
	return nil
}
