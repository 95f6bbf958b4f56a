package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/e2e/cluster"
)

// observer watches the ReplicaSets and Pods of a namespace, with only net/http and encoding/json. It checks every state
// of the server: the sum of the sizes of an app's sets, and the number of its available Pods.
type observer struct {
	namespace string
	client    *http.Client

	mu          sync.Mutex                 // guards the fields below
	most, least int                        // the limits of each app
	sizes       map[string]map[string]int  // of each app's sets
	available   map[string]map[string]bool // of each app's Pods
	states      int
	gaps        int // how many times states may have been missed because the server was away
	wrong       []string
}

// observe watches until the test ends.
func observe(t *testing.T, namespace string) *observer {
	t.Helper()
	o := &observer{namespace: namespace, client: server.HTTPClient(cluster.AdminToken)}
	o.limit(1<<30, 0)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { follows(ctx, o, "/apis/apps/v1/namespaces/"+namespace+"/replicasets", o.replaceSets, o.set) })
	all.Go(func() { follows(ctx, o, "/api/v1/namespaces/"+namespace+"/pods", o.replacePods, o.pod) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
		o.client.CloseIdleConnections()
		t.Logf("%d states were observed; %d times the server was away", o.states, o.gaps)
	})
	return o
}

// limit sets the largest number of replicas and the smallest number of available ones from now on.
func (o *observer) limit(most, least int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most, o.least = most, least
}

// check fails if a state broke a limit, or if there was no state at all.
func (o *observer) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.wrong)
	require.NotZero(t, o.states)
}

// follows lists and watches forever.
func follows[T any](ctx context.Context, o *observer, path string, replace func([]T), see func(kind string, object T)) {
	for ctx.Err() == nil {
		version, items, err := listPlain[T](ctx, o.client, path)
		if err == nil {
			replace(items)
			_ = watchPlain(ctx, o.client, path, version, see) // there is a gap, however the watch ends
		}
		o.mu.Lock()
		o.gaps++
		o.mu.Unlock()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func getPlain(ctx context.Context, client *http.Client, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		err = fmt.Errorf("%s", answer.Status)
	}
	return answer, err
}

func listPlain[T any](ctx context.Context, client *http.Client, path string) (version string, items []T, err error) {
	answer, err := getPlain(ctx, client, path)
	if err != nil {
		return "", nil, err
	}
	defer answer.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []T
	}
	err = json.NewDecoder(answer.Body).Decode(&list)
	return list.Metadata.ResourceVersion, list.Items, err
}

func watchPlain[T any](ctx context.Context, client *http.Client, path, version string, see func(string, T)) error {
	answer, err := getPlain(ctx, client, path+"?watch=1&resourceVersion="+version)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for events := json.NewDecoder(answer.Body); ; {
		var e struct {
			Type   string
			Object T
		}
		if err := events.Decode(&e); err != nil {
			return err
		}
		if e.Type == "ERROR" {
			return fmt.Errorf("the watch from %s ended", version)
		}
		see(e.Type, e.Object)
	}
}

func (o *observer) replaceSets(sets []appsv1.ReplicaSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sizes = map[string]map[string]int{}
	for _, s := range sets {
		o.noteSet(s)
	}
	for app := range o.sizes {
		o.judgeSizes(app)
	}
}

func (o *observer) set(kind string, s appsv1.ReplicaSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	app := o.noteSet(s)
	if kind == "DELETED" {
		delete(o.sizes[app], s.Name)
	}
	o.judgeSizes(app)
}

func (o *observer) noteSet(s appsv1.ReplicaSet) (app string) {
	app = s.Labels["app"]
	if o.sizes[app] == nil {
		o.sizes[app] = map[string]int{}
	}
	o.sizes[app][s.Name] = int(*s.Spec.Replicas)
	return app
}

func (o *observer) judgeSizes(app string) {
	o.states++
	sum := 0
	for _, n := range o.sizes[app] {
		sum += n
	}
	if sum > o.most {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %d replicas, of %d at most: %v", app, sum, o.most, o.sizes[app]))
	}
}

func (o *observer) replacePods(pods []corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.available = map[string]map[string]bool{}
	for _, p := range pods {
		o.notePod(p)
	}
	for app := range o.available {
		o.judgeAvailable(app)
	}
}

func (o *observer) pod(kind string, p corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	app := o.notePod(p)
	if kind == "DELETED" {
		delete(o.available[app], p.Name)
	}
	o.judgeAvailable(app)
}

func (o *observer) notePod(p corev1.Pod) (app string) {
	app = p.Labels["app"]
	if o.available[app] == nil {
		o.available[app] = map[string]bool{}
	}
	ready := false
	for _, c := range p.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	delete(o.available[app], p.Name)
	if ready && p.DeletionTimestamp == nil {
		o.available[app][p.Name] = true
	}
	return app
}

func (o *observer) judgeAvailable(app string) {
	o.states++
	if n := len(o.available[app]); n < o.least {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %d available, of %d at least", app, n, o.least))
	}
}
