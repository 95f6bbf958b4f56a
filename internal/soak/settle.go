package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// settleTimeout is how long everything may take to reach the desired state once nothing is disturbed. It is a multiple
// of what a machine needs that runs twenty other programs, with the race detector.
const settleTimeout = 5 * time.Minute

// settle ends everything unquiet and waits until everything agrees with the server.
func (s *soak) settle(ctx context.Context, v *visitors, lied bool) error {
	s.quiet.Store(true)
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("soak: round %d does not settle in %v", s.round, settleTimeout))
	defer cancel()
	s.world.server.Heal()
	if err := v.end(ctx); err != nil {
		return fmt.Errorf("soak: a visitor does not leave: %w", err)
	}
	if lied {
		if err := s.reveal(); err != nil {
			return err
		}
	}
	for n := range millCount {
		if err := s.put(n, n%(maxParts+1)); err != nil {
			return err
		}
	}
	if err := poll(ctx, settleTimeout, s.settled); err != nil {
		return err
	}
	return s.forget()
}

// reveal makes every informer list again: an object of each kind changes during an outage, and the server forgets the
// history of it.
func (s *soak) reveal() error {
	server := s.world.server
	out := server.Inject(faults.Fault{Effect: faults.Outage{}})
	defer out.Remove()
	if err := s.put(0, maxParts); err != nil {
		return err
	}
	hidden := map[string]any{"metadata": map[string]any{"namespace": namespaceOf(0), "name": "hidden"}}
	if _, err := server.Create(parts, hidden); err != nil {
		return err
	}
	if err := server.Delete(parts, api.Key{Namespace: namespaceOf(0), Name: "hidden"}); err != nil {
		return err
	}
	server.Inject(faults.Fault{Effect: faults.Compact{}})
	return nil
}

// settled returns what is not as it should be.
func (s *soak) settled() error {
	if err := s.collectGarbage(); err != nil {
		return err
	}
	now := s.world.server.Snapshot()
	for _, check := range []func(*testserver.Snapshot) error{s.leads, s.made, s.cached, s.idle, s.scraped} {
		if err := check(now); err != nil {
			return err
		}
	}
	return nil
}

// collectGarbage deletes the parts of mills that are gone, as kube-controller-manager does. A leader that was cut off
// may have made one for a mill that was replaced since; controller.Owns ignores it: its owner has another UID.
func (s *soak) collectGarbage() error {
	now := s.world.server.Snapshot()
	for p := range now.All(parts) {
		for _, o := range p.GetOwnerReferences() {
			m, ok := now.Get(mills, api.Key{Namespace: p.GetNamespace(), Name: o.Name})
			if ok && m.GetUID() == o.UID {
				continue
			}
			key := api.Key{Namespace: p.GetNamespace(), Name: p.GetName()}
			if err := ignoreNotFound(s.world.server.Delete(parts, key)); err != nil {
				return err
			}
		}
	}
	return nil
}

// leads checks that exactly one replica leads. It starts a replica again that lost its lease on a busy machine.
func (s *soak) leads(*testserver.Snapshot) error {
	leaders := 0
	for i, r := range s.replicas {
		if r.hasEnded() {
			return s.replace(i, r.end)
		}
		if r.elector.Leading() {
			leaders++
		}
	}
	if leaders != 1 {
		return fmt.Errorf("soak: %d replicas lead", leaders)
	}
	return nil
}

// made checks that every mill has its parts, and its status says so.
func (s *soak) made(now *testserver.Snapshot) error {
	wanted := 0
	for u := range now.All(mills) {
		count, _, _ := unstructured.NestedInt64(u.Object, "spec", "parts")
		asked, _, _ := unstructured.NestedString(u.Object, "spec", "text")
		reported, _, _ := unstructured.NestedString(u.Object, "status", "text")
		if asked != reported {
			return fmt.Errorf("soak: the status of mill %s/%s is behind; %s", u.GetNamespace(), u.GetName(), s.leaderStats())
		}
		for n := range count {
			key := api.Key{Namespace: u.GetNamespace(), Name: fmt.Sprintf("%s-%d", u.GetName(), n)}
			p, ok := now.Get(parts, key)
			if !ok || len(p.GetOwnerReferences()) != 1 || p.GetOwnerReferences()[0].UID != u.GetUID() {
				return fmt.Errorf("soak: part %s is missing, or belongs to another mill; %s", key, s.leaderStats())
			}
		}
		wanted += int(count)
	}
	if have := now.Len(parts); have != wanted {
		return fmt.Errorf("soak: there are %d parts instead of %d; %s", have, wanted, s.leaderStats())
	}
	return nil
}

func (s *soak) leaderStats() string {
	for _, r := range s.replicas {
		if r.elector.Leading() {
			return fmt.Sprintf("the controller of %s: %+v", r.name, r.controller.Stats())
		}
	}
	return "no replica leads"
}

// cached checks that every cache is equal to the server.
func (s *soak) cached(now *testserver.Snapshot) error {
	wantMills, wantParts := now.Versions(mills), now.Versions(parts)
	if err := equal("the observer", s.observer.mills.Informer, wantMills); err != nil {
		return err
	}
	if err := equal("the observer", s.observer.parts, wantParts); err != nil {
		return err
	}
	for _, r := range s.replicas {
		if err := equal(r.name, r.mills.Informer, wantMills); err != nil {
			return err
		}
		if err := equal(r.name, r.parts.Informer, wantParts); err != nil {
			return err
		}
	}
	return nil
}

// idle checks that nothing is left to do.
func (s *soak) idle(*testserver.Snapshot) error {
	pending := s.observer.recorder.Stats().Waiting
	for _, h := range append(s.observer.mills.Status().Handlers, s.observer.parts.Status().Handlers...) {
		pending += h.Pending
	}
	for _, r := range s.replicas {
		pending += r.recorder.Stats().Waiting
		for _, h := range append(r.mills.Status().Handlers, r.parts.Status().Handlers...) {
			pending += h.Pending
		}
		if r.elector.Leading() {
			pending += busy(r.controller.Stats())
		}
	}
	if pending > 0 {
		return fmt.Errorf("soak: %d things are left to do; %s", pending, s.leaderStats())
	}
	return nil
}

// scraped checks that the replicas answer with their metrics.
func (s *soak) scraped(*testserver.Snapshot) error {
	var failed error
	for _, r := range s.replicas {
		failed = errors.Join(failed, r.scrape(context.Background()))
	}
	return failed
}

// busy is how many keys a controller has left to reconcile.
func busy(c controller.Stats) int {
	return c.Queue.Depth + c.Queue.Delayed + c.Queue.Processing + c.Gated
}

// forget deletes what a cluster deletes after a while: Events and history.
func (s *soak) forget() error {
	server := s.world.server
	all, err := server.List(eventResource, "")
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := ignoreNotFound(server.Delete(eventResource, api.Key{Namespace: e.GetNamespace(), Name: e.GetName()})); err != nil {
			return err
		}
	}
	server.Inject(faults.Fault{Effect: faults.Compact{}})
	server.Heal()
	return nil
}
