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

	mu          sync.Mutex // guards the fields below
	most, least int        // the limits of each app
	sizes       counts     // of each app's sets
	available   counts     // 1 for each available Pod of an app
	states      int
	gaps        int // how many times states may have been missed because the server was away
	wrong       []string
}

// counts are numbers by app and name of an object.
type counts map[string]map[string]int

// kind counts the objects of one kind, by app and name.
type kind[T any] struct {
	counts counts
	count  func(T) (app, name string, n int) // an object with n = 0 does not count
	judge  func(app string)
}

// observe watches until the test ends.
func observe(t *testing.T, namespace string) *observer {
	t.Helper()
	o := &observer{namespace: namespace, client: server.HTTPClient(cluster.AdminToken), sizes: counts{}, available: counts{}}
	o.limit(1<<30, 0)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		follows(ctx, o, "/apis/apps/v1/namespaces/"+namespace+"/replicasets", kind[appsv1.ReplicaSet]{o.sizes, replicaCount, o.judgeSizes})
	})
	all.Go(func() {
		follows(ctx, o, "/api/v1/namespaces/"+namespace+"/pods", kind[corev1.Pod]{o.available, available, o.judgeAvailable})
	})
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
func follows[T any](ctx context.Context, o *observer, path string, k kind[T]) {
	for ctx.Err() == nil {
		version, items, err := listPlain[T](ctx, o.client, path)
		if err == nil {
			k.replace(o, items)
			see := func(event string, object T) { k.see(o, event, object) }
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

// replace notes the objects of a list instead of all others.
func (k kind[T]) replace(o *observer, objects []T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(k.counts)
	for _, object := range objects {
		k.note("", object)
	}
	for app := range k.counts {
		k.judge(app)
	}
}

// see notes the object of an event.
func (k kind[T]) see(o *observer, event string, object T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k.judge(k.note(event, object))
}

func (k kind[T]) note(event string, object T) (app string) {
	app, name, n := k.count(object)
	if k.counts[app] == nil {
		k.counts[app] = map[string]int{}
	}
	k.counts[app][name] = n
	if n == 0 || event == "DELETED" {
		delete(k.counts[app], name)
	}
	return app
}

func replicaCount(s appsv1.ReplicaSet) (app, name string, n int) {
	return s.Labels["app"], s.Name, int(*s.Spec.Replicas)
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

func available(p corev1.Pod) (app, name string, n int) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
			n = 1
		}
	}
	return p.Labels["app"], p.Name, n
}

func (o *observer) judgeAvailable(app string) {
	o.states++
	if n := len(o.available[app]); n < o.least {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %d available, of %d at least", app, n, o.least))
	}
}
