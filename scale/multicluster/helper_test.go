package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/multicluster"
	"github.com/leatproject/leat/testserver"
)

var (
	secrets    = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	configMaps = fixture.ConfigMaps
)

var key = api.Key{Namespace: "default", Name: "a"}

// followed are the options of the tests.
var followed = multicluster.Options{Namespace: "fleet", Selector: api.Selector{Labels: "cluster=yes"}}

// network has the servers of a test. Each host is one server.
type network struct {
	t *testing.T

	mu      sync.Mutex // guards the fields below
	servers map[string]http.RoundTripper
	tokens  map[string][]string // the tokens that each host got, each once, in the order of their first use
}

var errNoRoute = errors.New("no route to host")

// RoundTrip sends a request to the server of its host. A host without a server is unreachable.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	to := n.servers[r.URL.Host]
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !slices.Contains(n.tokens[r.URL.Host], token) {
		n.tokens[r.URL.Host] = append(n.tokens[r.URL.Host], token)
	}
	n.mu.Unlock()
	if to == nil {
		return nil, errNoRoute
	}
	return to.RoundTrip(r)
}

func (n *network) seen(host string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.tokens[host])
}

// world is a hub, whose Secrets name clusters, and a set with a controller that records its keys.
type world struct {
	*network
	hub  *testserver.Server
	set  *multicluster.Set
	maps *multicluster.Informers[*corev1.ConfigMap]
	ctl  *controller.Controller[multicluster.Key]

	recorded sync.Mutex // guards the field below
	keys     []string
}

func newWorld(t *testing.T, o multicluster.Options) *world {
	t.Helper()
	w := &world{network: &network{t: t, servers: map[string]http.RoundTripper{}, tokens: map[string][]string{}}}
	w.hub = w.serve("hub")
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://hub", Transport: w.network}))(t)
	configure := o.Configure
	o.Configure = func(cluster string, c *apiclient.Config) {
		if configure != nil {
			configure(cluster, c)
		}
		c.Transport = w.network
	}
	w.set = must.Get(multicluster.New(client, o))(t)
	w.maps = multicluster.Inform(w.set, func(c *multicluster.Cluster) api.ListerWatcher[*corev1.ConfigMap] {
		return apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "")
	}, informer.Options[*corev1.ConfigMap]{})
	w.ctl = controller.New("maps", controller.Func[multicluster.Key](w.reconcile), controller.Options{Workers: 1})
	w.ctl.Watch(multicluster.For(w.maps))
	return w
}

// inWorld runs a test in a bubble, with the options of the tests.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, followed)) })
}

// start runs parts until the test ends.
func (w *world) start(parts ...func(context.Context) error) (stop func()) {
	return fixture.Start(w.t, fixture.All(parts...))
}

// reconcile records what the reconciler finds in the cache of the cluster.
func (w *world) reconcile(_ context.Context, key multicluster.Key) (controller.Result, error) {
	line := key.String() + " is gone"
	if object, found := w.maps.Get(key); found {
		line = fmt.Sprintf("%s=%s", key, object.Data["v"])
	}
	w.recorded.Lock()
	defer w.recorded.Unlock()
	w.keys = append(w.keys, line)
	return controller.Result{}, nil
}

// take returns the reconciles since the last call, sorted.
func (w *world) take() []string {
	w.recorded.Lock()
	defer w.recorded.Unlock()
	keys := w.keys
	w.keys = nil
	slices.Sort(keys)
	return keys
}

// serve starts a server at a host, which may have had another one.
func (n *network) serve(host string) *testserver.Server {
	n.t.Helper()
	return n.run(host, testserver.New(testserver.Options{}))
}

// run runs a server at a host until the test ends.
func (n *network) run(host string, s *testserver.Server) *testserver.Server {
	n.t.Helper()
	fixture.Start(n.t, s.Run)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[host] = s.Client().Transport
	n.t.Cleanup(s.Client().CloseIdleConnections)
	return s
}

// cut makes a host unreachable for new connections.
func (n *network) cut(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.servers, host)
}

func put(t *testing.T, s *testserver.Server, name, value string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: fixture.Meta("default", name), Data: map[string]string{"v": value}}
	_, err := s.Create(configMaps, object)
	if err != nil {
		_, err = s.Update(configMaps, object)
	}
	require.NoError(t, err)
}

// join creates or changes the Secret of a cluster.
func (w *world) join(name, content string) {
	w.t.Helper()
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{"cluster": "yes"}},
		Data:       map[string][]byte{"kubeconfig": []byte(content)},
	}
	_, err := w.hub.Create(secrets, object)
	if err != nil {
		_, err = w.hub.Update(secrets, object)
	}
	require.NoError(w.t, err)
}

func (w *world) leave(name string) {
	w.t.Helper()
	require.NoError(w.t, w.hub.Delete(secrets, api.Key{Namespace: "fleet", Name: name}))
}

// kubeconfig returns the kubeconfig of a user with a token.
func config(host, token string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "http://%s"}}]
users: [{name: it, user: {token: %s}}]
`, host, token)
}

// health returns one line for each cluster.
func (w *world) health() (lines []string) {
	for _, h := range w.set.Health() {
		line := h.Cluster + " synced"
		if !h.Synced {
			line = h.Cluster + " not synced"
		}
		if h.Err != nil {
			line += ": " + h.Err.Error()
		}
		lines = append(lines, line)
	}
	return lines
}
