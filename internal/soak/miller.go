package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/reconcile/owner"
)

var errNoLuck = errors.New("soak: no luck")

// miller is the reconciler: it gives every mill its parts.
type miller struct {
	quiet    *atomic.Bool // true while nothing may fail on purpose
	mills    *cachedclient.Typed[*mill]
	parts    *cachedclient.Typed[*part]
	byMill   *cache.Index[*part, string]
	recorder *events.Recorder
}

// millOf is the index of parts by the mill that they were made for.
func millOf(p *part) []string {
	if o := metav1.GetControllerOf(p); o != nil {
		return []string{p.Namespace + "/" + o.Name}
	}
	return nil
}

// Reconcile makes the parts of a mill as many as it wants, and writes into its status that they are there.
func (m *miller) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	if err := m.trouble(ctx); err != nil {
		return controller.Result{}, err
	}
	owned, err := m.parts.List(ctx, cachedclient.ListOptions{}, cachedclient.By(m.byMill, key.String()))
	if err != nil {
		return controller.Result{}, err
	}
	wanted, err := m.mills.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, m.remove(ctx, owned.Items)
	}
	if err != nil {
		return controller.Result{}, err
	}
	if err := m.adjust(ctx, wanted, owned.Items); err != nil {
		m.recorder.Warning(mills, wanted, "Failed", "%v", err)
		return controller.Result{}, err
	}
	return controller.Result{}, m.report(ctx, wanted)
}

// trouble panics, fails or lingers now and then.
func (m *miller) trouble(ctx context.Context) error {
	if m.quiet.Load() {
		return nil
	}
	switch rand.IntN(40) {
	case 0:
		panic("soak: a bug in a reconciler")
	case 1, 2:
		return errNoLuck
	case 3:
		pause(ctx, rand.N(300*time.Millisecond))
	}
	return nil
}

// adjust creates the parts that are missing and deletes those that are too many.
func (m *miller) adjust(ctx context.Context, wanted *mill, owned []*part) error {
	have := map[string]*part{}
	for _, p := range owned {
		have[p.Name] = p
	}
	for n := range wanted.Spec.Parts {
		name := fmt.Sprintf("%s-%d", wanted.Name, n)
		if p := have[name]; p != nil && owner.Controls(wanted, p) {
			delete(have, name)
			continue
		} else if p != nil { // of a former mill of the same name
			if err := m.remove(ctx, []*part{p}); err != nil {
				return err
			}
			delete(have, name)
		}
		if err := m.create(ctx, wanted, name); err != nil {
			return err
		}
	}
	var surplus []*part
	for _, p := range have {
		surplus = append(surplus, p)
	}
	return m.remove(ctx, surplus)
}

func (m *miller) create(ctx context.Context, wanted *mill, name string) error {
	p := &part{}
	p.Namespace, p.Name = wanted.Namespace, name
	if err := owner.SetController(wanted, mills, p); err != nil {
		return err
	}
	_, err := m.parts.Create(ctx, p, metav1.CreateOptions{})
	if err == nil {
		m.recorder.Normal(mills, wanted, "Created", "part %s", name)
	}
	return err
}

func (m *miller) remove(ctx context.Context, surplus []*part) error {
	var failed error
	for _, p := range surplus {
		err := m.parts.Delete(ctx, api.KeyOf(p), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (m *miller) report(ctx context.Context, wanted *mill) error {
	_, _, err := m.mills.ChangeStatus(ctx, api.KeyOf(wanted), func(o *mill) error {
		o.Status = millStatus{Parts: wanted.Spec.Parts, Text: wanted.Spec.Text}
		return nil
	})
	return err
}

// pause waits so long, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
