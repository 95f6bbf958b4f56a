package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/e2e/cluster"
)

const (
	realPods    = 20_000
	realEvents  = 2_000
	realSingle  = 5_000 // events of a round that come one by one
	realWriters = 8
)

// RealRows returns the rows with a real etcd and kube-apiserver, over TLS and HTTP/2, with the server's default
// compression.
func RealRows() []Row {
	sync := subject.Spec{Work: subject.Sync, Objects: realPods}
	events := subject.Spec{Work: subject.Events, Objects: realPods, Events: realEvents}
	single := events
	single.Events = realSingle
	stripped, listing := sync, sync
	stripped.Strip, listing.Listed = true, true
	return []Row{
		{
			Name: "real-cache", Title: "A real API server: the first list, and the memory afterwards", Rounds: 3,
			Columns: []string{"live B/object", "live MB", "peak MB", "cpu s", "wall s"},
			Note:    "etcd and kube-apiserver with 20,000 pods, each written by two managers.",
			Entrants: []Entrant{
				entrant("leat, corev1.Pod", leat, sync, subject.Full, ""),
				entrant("client-go, corev1.Pod", clientGo, sync, subject.Full, ""),
				entrant("client-go, corev1.Pod, stripped", clientGo, stripped, subject.Full, ""),
				entrant("leat, corev1.Pod, listed", leat, listing, subject.Full, ""),
				listed(entrant("client-go, corev1.Pod, stripped, listed", clientGo, stripped, subject.Full, "")),
				entrant("leat, 8 fields, JSON", leat, sync, subject.Struct, subject.JSON),
				entrant("leat, 8 fields", leat, sync, subject.Struct, ""),
				entrant("leat, metadata", leat, sync, subject.Metadata, ""),
				entrant("client-go, metadata", clientGo, sync, subject.Metadata, ""),
			},
		},
		{
			Name: "real-events", Title: "A real API server: events of a watch", Rounds: 3, Columns: eventColumns,
			Note: "Eight writers change 2,000 pods as fast as the server allows, so that events come one or a few at a time.",
			Entrants: []Entrant{
				entrant("leat, corev1.Pod, JSON", leat, events, subject.Full, subject.JSON),
				entrant("client-go, corev1.Pod, JSON", clientGo, events, subject.Full, subject.JSON),
				entrant("leat, corev1.Pod, protobuf", leat, events, subject.Full, subject.Protobuf),
				entrant("client-go, corev1.Pod, protobuf", clientGo, events, subject.Full, subject.Protobuf),
				entrant("leat, 8 fields, JSON", leat, events, subject.Struct, subject.JSON),
			},
		},
		{
			Name: "real-single", Title: "A real API server: single events", Rounds: 4, Columns: eventColumns,
			Note: "One writer changes the status of pods, one after the other: it waits for the server's answer before the next change. 20,000 events in four rounds.",
			Entrants: []Entrant{
				oneByOne(entrant("leat, corev1.Pod, protobuf", leat, single, subject.Full, subject.Protobuf)),
				oneByOne(entrant("client-go, corev1.Pod, protobuf", clientGo, single, subject.Full, subject.Protobuf)),
			},
		},
	}
}

func oneByOne(e Entrant) Entrant {
	e.Single = true
	return e
}

// fullCluster is a cluster with the pods of the fixed set.
type fullCluster struct {
	*cluster.Cluster
	paths   []string // of the pods
	changes atomic.Int64
}

// startCluster starts the servers and creates the pods. The returned function stops the servers.
func (r *run) startCluster(ctx context.Context) (c *fullCluster, stop func() error, err error) {
	c = &fullCluster{paths: make([]string, realPods)}
	if c.Cluster, stop, err = r.startKube(ctx); err != nil {
		return nil, nil, err
	}
	_, _ = fmt.Fprintf(r.Progress, "writing %d pods to a real API server (a minute or two)\n", realPods)
	if err := c.fill(ctx, r.set); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return c, stop, nil
}

// fill creates every pod, and then writes its status with another manager.
func (c *fullCluster) fill(ctx context.Context, set *load.Set) error {
	var namespaces sync.Map
	return inParallel(ctx, realPods, realWriters, func(ctx context.Context, i int) error {
		pod, err := decodePod(set, i)
		if err != nil {
			return err
		}
		metadata := pod["metadata"].(map[string]any)
		namespace, name := metadata["namespace"].(string), metadata["name"].(string)
		once, _ := namespaces.LoadOrStore(namespace, sync.OnceValue(func() error { return c.createNamespace(ctx, namespace) }))
		if err := once.(func() error)(); err != nil {
			return err
		}
		c.paths[i] = "/api/v1/namespaces/" + namespace + "/pods/" + name
		return c.write(ctx, pod, "/api/v1/namespaces/"+namespace+"/pods", c.paths[i])
	})
}

// decodePod returns pod i without the fields that only a server may set.
func decodePod(set *load.Set, i int) (map[string]any, error) {
	var pod map[string]any
	if err := json.Unmarshal(set.Append(nil, load.JSON, i, load.State{Version: load.FirstVersion}), &pod); err != nil {
		return nil, err
	}
	metadata := pod["metadata"].(map[string]any)
	for _, assigned := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generateName"} {
		delete(metadata, assigned)
	}
	return pod, nil
}

func (c *fullCluster) createNamespace(ctx context.Context, name string) error {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	_, err := c.Must(ctx, http.MethodPost, "/api/v1/namespaces", []byte(body))
	return err
}

// write creates a pod and patches its status.
func (c *fullCluster) write(ctx context.Context, pod map[string]any, collection, path string) error {
	status := map[string]any{"status": pod["status"]}
	delete(pod, "status")
	body, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	if _, err := c.Must(ctx, http.MethodPost, collection+"?fieldManager=kube-controller-manager", body); err != nil {
		return err
	}
	if body, err = json.Marshal(status); err != nil {
		return err
	}
	_, err = c.Must(ctx, http.MethodPatch, path+"/status?fieldManager=kubelet", body)
	return err
}

// change changes a number of pods, each once.
func (c *fullCluster) change(ctx context.Context, n, writers int) error {
	return inParallel(ctx, n, writers, func(ctx context.Context, i int) error {
		body := fmt.Sprintf(`{"status":{"message":"change %09d"}}`, c.changes.Add(1))
		_, err := c.Must(ctx, http.MethodPatch, c.paths[i*7%len(c.paths)]+"/status?fieldManager=kubelet", []byte(body))
		return err
	})
}

// turnWithCluster runs one turn of an entrant with the real servers.
func (r *run) turnWithCluster(ctx context.Context, e Entrant) (subject.Metrics, error) {
	e.Spec.URL, e.Spec.CA, e.Spec.Token = r.cluster.URL(), r.cluster.CA(), cluster.AdminToken
	p, err := launch(ctx, filepath.Join(r.Binaries, e.Program), e.Spec, e.Env)
	if err != nil {
		return nil, err
	}
	writers := realWriters
	if e.Single {
		writers = 1
	}
	report, err := p.wait(func() error { return r.cluster.change(ctx, e.Spec.Events, writers) })
	if err != nil {
		return nil, err
	}
	return report.Metrics, nil
}

// real measures the rows that need real servers.
func (r *run) real(ctx context.Context, result *Result) (err error) {
	if err := r.servers(ctx, result); err != nil {
		return err
	}
	rows := r.choose(RealRows())
	if len(rows) == 0 {
		return nil
	}
	c, stop, err := r.startCluster(ctx)
	if err != nil {
		return fmt.Errorf("runner: real servers: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	r.cluster = c
	return r.subjects(ctx, rows, result)
}
