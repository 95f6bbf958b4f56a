package demo

import (
	"context"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// calmTraffic is the number of changes a second until the Lab changes it.
const calmTraffic = 1.4

// traffic creates ReplicaSets, and changes them until ctx ends, so that the live page has something to show. A change
// that fails is followed by the next, because the Lab makes requests fail.
func (d *demo) traffic(ctx context.Context) error {
	sets, names := d.shop(), []string{"web", "basket", "search", "mail"}
	for _, name := range names {
		_ = change(ctx, sets, api.Key{Namespace: "shop", Name: name}, 1+rand.IntN(5))
	}
	for {
		var next <-chan time.Time // without traffic, it waits only for a new rate
		if every := time.Duration(d.every.Load()); every > 0 {
			next = time.After(every)
		}
		select {
		case <-next:
			key := api.Key{Namespace: "shop", Name: names[rand.IntN(len(names))]}
			_ = change(ctx, sets, key, 1+rand.IntN(5))
		case <-d.paced:
		case <-ctx.Done():
			return nil
		}
	}
}

// setTraffic sets the number of changes a second.
func (d *demo) setTraffic(rate float64) {
	every := time.Duration(0)
	if rate > 0 {
		every = time.Duration(float64(time.Second) / rate)
	}
	d.every.Store(int64(every))
	select {
	case d.paced <- struct{}{}:
	default: // the loop will look anyway
	}
}

// shop returns the client of the ReplicaSets that the traffic and the Lab change.
func (d *demo) shop() *apiclient.TypedClient[*unstructured.Unstructured] {
	return apiclient.NewTyped[*unstructured.Unstructured](d.client, replicaSets, "shop")
}

// change scales a ReplicaSet, and creates it if it does not exist.
func change(ctx context.Context, sets *apiclient.TypedClient[*unstructured.Unstructured], key api.Key, replicas int) error {
	err := scale(ctx, sets, key, replicas)
	if apierrors.IsNotFound(err) {
		_, err = sets.Create(ctx, newReplicaSet(key, int64(replicas)), metav1.CreateOptions{})
	}
	return err
}

func scale(ctx context.Context, sets *apiclient.TypedClient[*unstructured.Unstructured], key api.Key, replicas int) error {
	patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"replicas": replicas}})
	if err == nil {
		_, err = sets.Patch(ctx, key, patch, apiclient.PatchOptions{})
	}
	return err
}

// mutable is a writer that can be switched off.
type mutable struct {
	w     io.Writer
	muted atomic.Bool
}

func (m *mutable) mute() { m.muted.Store(true) }

// Write writes p, or drops it.
func (m *mutable) Write(p []byte) (int, error) {
	if m.muted.Load() {
		return len(p), nil
	}
	return m.w.Write(p)
}
