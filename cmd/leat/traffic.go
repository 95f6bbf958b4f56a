package main

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

// trafficEvery is the pause between two changes of the demonstration's traffic.
const trafficEvery = 700 * time.Millisecond

// traffic changes ReplicaSets until ctx ends, so that the live page has something to show.
func (d *demo) traffic(ctx context.Context) error {
	sets := apiclient.NewTyped[*unstructured.Unstructured](d.client, replicaSets, "shop")
	next := time.NewTicker(trafficEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		names := []string{"web", "basket", "search", "mail"}
		key := api.Key{Namespace: "shop", Name: names[rand.IntN(len(names))]}
		if err := change(ctx, sets, key, 1+rand.IntN(5)); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// change scales a ReplicaSet, and creates it if it does not exist.
func change(ctx context.Context, sets *apiclient.TypedClient[*unstructured.Unstructured], key api.Key, replicas int) error {
	patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"replicas": replicas}})
	if err != nil {
		return err
	}
	_, err = sets.Patch(ctx, key, patch, apiclient.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = sets.Create(ctx, newReplicaSet(key, int64(replicas)), metav1.CreateOptions{})
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
