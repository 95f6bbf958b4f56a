package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
)

const (
	fleetLabel = "fleet.leat.example/load"
	perSpace   = 10 // Deployments in a namespace
	writers    = 8  // requests at the same time
)

var namespaces = api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}

// state has the fields of a Deployment that show whether it is rolled out.
type state struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Replicas           int32 `json:"replicas"`
		UpdatedReplicas    int32 `json:"updatedReplicas"`
		AvailableReplicas  int32 `json:"availableReplicas"`
	} `json:"status"`
}

// load is the Deployments of the replicas.
type load struct {
	count       int
	out         io.Writer
	spaces      *apiclient.TypedClient[*corev1.Namespace]
	deployments *apiclient.TypedClient[*appsv1.Deployment]
	cached      *informer.Informer[*state]
}

func newLoad(client *apiclient.Client, count int, out io.Writer) *load {
	return &load{
		count: count, out: out,
		spaces:      apiclient.NewTyped[*corev1.Namespace](client, namespaces, ""),
		deployments: apiclient.NewTyped[*appsv1.Deployment](client, workload.Deployments, ""),
		cached: informer.New(apiclient.NewPartial[*state](client, workload.Deployments, ""),
			informer.Options[*state]{Selector: api.Selector{Labels: fleetLabel}}),
	}
}

// key returns the key of a Deployment. The names of the namespaces differ in the first characters, because the hash of
// names that differ at the end only is almost the same.
func (l *load) key(n int) api.Key {
	return api.Key{Namespace: fmt.Sprintf("%08x-fleet", uint32(n/perSpace)*2654435769), Name: fmt.Sprint("web-", n%perSpace)}
}

// create creates the namespaces and the Deployments that are missing.
func (l *load) create(ctx context.Context) error {
	err := l.each(ctx, "namespaces are created", (l.count+perSpace-1)/perSpace, func(n int) error {
		_, err := l.spaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.key(n * perSpace).Namespace}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return l.each(ctx, "Deployments are created", l.count, func(n int) error {
		key, one := l.key(n), int32(1)
		labels := map[string]string{"app": key.Name}
		_, err := l.deployments.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{fleetLabel: "yes"}},
			Spec: appsv1.DeploymentSpec{
				Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "fleet:1"}}},
				},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// roll gives all Deployments an image that they have not had before.
func (l *load) roll(ctx context.Context) error {
	image := fmt.Sprint("fleet:", time.Now().Unix())
	return l.each(ctx, "Deployments have a new image", l.count, func(n int) error {
		patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "web", "image": image}},
		}}}})
		if err == nil {
			_, err = l.deployments.Patch(ctx, l.key(n), patch, apiclient.PatchOptions{})
		}
		return err
	})
}

// each calls do for 0 to count-1, and prints the progress once a second. It returns the first error, except that an
// object exists already.
func (l *load) each(ctx context.Context, what string, count int, do func(int) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next, finished atomic.Int64
	var active sync.WaitGroup
	for range writers {
		active.Go(func() {
			for n := next.Add(1) - 1; n < int64(count) && ctx.Err() == nil; n = next.Add(1) - 1 {
				if err := do(int(n)); err != nil && !apierrors.IsAlreadyExists(err) {
					fail(err)
				}
				finished.Add(1)
			}
		})
	}
	all := make(chan struct{})
	go func() { active.Wait(); close(all) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-all:
			return context.Cause(ctx)
		case <-tick.C:
			fmt.Fprintf(l.out, "%d of %d %s\n", finished.Load(), count, what)
		}
	}
}

// done counts the Deployments that are rolled out.
func (l *load) done() (n int) {
	for _, d := range l.cached.Cache().All() {
		if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == d.Spec.Replicas &&
			d.Status.UpdatedReplicas == d.Spec.Replicas && d.Status.AvailableReplicas == d.Spec.Replicas {
			n++
		}
	}
	return n
}

// in counts the Deployments whose namespaces are in a set.
func (l *load) in(set hashrange.Set) (n int) {
	for key := range l.cached.Cache().All() {
		if set.Contains(hashrange.Hash(key.Namespace)) {
			n++
		}
	}
	return n
}
