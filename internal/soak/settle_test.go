package soak_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// settleTimeout is how long everything may take to reach the desired state once nothing is disturbed. It is a multiple
// of what a machine needs that runs twenty other programs, with the race detector.
const settleTimeout = 5 * time.Minute

// settle ends everything unquiet and waits until everything agrees with the server.
func (s *soak) settle(v *visitors, injected map[string][]*testserver.Injection) {
	s.quiet.Store(true)
	s.server.Heal()
	v.end()
	for _, name := range undetected {
		if len(injected[name]) > 0 {
			s.reveal()
			break
		}
	}
	for n := range millCount {
		s.put(n, n%(maxParts+1))
	}
	if err := poll(settleTimeout, s.settled); err != nil {
		writeGoroutines()
		s.Fatalf("soak: round %d does not settle in %v: %v", s.round, settleTimeout, err)
	}
	for _, e := range must.Get(s.server.List(happen, ""))(s) { // as a cluster deletes them after a while
		s.delete(happen, api.Key{Namespace: e.GetNamespace(), Name: e.GetName()})
	}
	s.server.Inject(faults.Fault{Effect: faults.Compact{}})
	s.server.Heal()
}

// reveal makes every informer list again: an object of each kind changes during an outage, and the server forgets the
// history of it.
func (s *soak) reveal() {
	out := s.server.Inject(faults.Fault{Effect: faults.Outage{}})
	defer out.Remove()
	s.put(0, maxParts)
	hidden := map[string]any{"metadata": map[string]any{"namespace": namespaceOf(0), "name": "hidden"}}
	require.NoError(s, must.Err(s.server.Create(parts, hidden)))
	s.delete(parts, api.Key{Namespace: namespaceOf(0), Name: "hidden"})
	s.server.Inject(faults.Fault{Effect: faults.Compact{}})
}

// settled returns what is not as it should be.
func (s *soak) settled() error {
	s.collectGarbage(s.server.Snapshot())
	now := s.server.Snapshot()
	for _, check := range []func(*testserver.Snapshot) error{s.leads, s.made, s.cached, s.idle} {
		if err := check(now); err != nil {
			return err
		}
	}
	return errors.Join(s.replicas[0].scrape(), s.replicas[1].scrape())
}

// collectGarbage deletes the parts of mills that are gone, as kube-controller-manager does. A leader that was cut off
// may have made one for a mill that was replaced since; controller.Owns ignores it: its owner has another UID.
func (s *soak) collectGarbage(now *testserver.Snapshot) {
	for p := range now.All(parts) {
		for _, o := range p.GetOwnerReferences() {
			if m, ok := now.Get(mills, api.Key{Namespace: p.GetNamespace(), Name: o.Name}); !ok || m.GetUID() != o.UID {
				s.delete(parts, api.Key{Namespace: p.GetNamespace(), Name: p.GetName()})
			}
		}
	}
}

// leads checks that exactly one replica leads. It starts a replica again that lost its lease on a busy machine.
func (s *soak) leads(*testserver.Snapshot) error {
	leaders := 0
	for i, r := range s.replicas {
		if r.hasEnded() {
			require.NoError(s, r.end())
			s.replicas[i] = s.newReplica(i)
		} else if r.elector.Leading() {
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
		count, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
		reported, _, _ := unstructured.NestedInt64(u.Object, "status", "ready")
		if reported != u.GetGeneration() {
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
	failed := errors.Join(equal("the observer", s.observer.mills.Informer, wantMills), equal("the observer", s.observer.parts, wantParts))
	for _, r := range s.replicas {
		failed = errors.Join(failed, equal(r.name, r.mills.Informer(), wantMills), equal(r.name, r.parts.Informer(), wantParts))
	}
	return failed
}

// equal returns an error if a cache and the server differ.
func equal(name string, i *informer.Informer[*widget], want map[api.Key]string) error {
	s := i.Snapshot()
	for key, version := range want {
		if o, ok := s.Get(key); !ok || o.GetResourceVersion() != version {
			return fmt.Errorf("soak: %s lacks %s %s at version %s: %s", name, i.Resource(), key, version, i.Status())
		}
	}
	if s.Len() != len(want) {
		return fmt.Errorf("soak: %s has %d %s, the server %d: %s", name, s.Len(), i.Resource(), len(want), i.Status())
	}
	return nil
}

// idle checks that nothing is left to do.
func (s *soak) idle(*testserver.Snapshot) error {
	pending := s.observer.recorder.Stats().Waiting
	informers := []*informer.Informer[*widget]{s.observer.mills.Informer, s.observer.parts}
	for _, r := range s.replicas {
		pending += r.recorder.Stats().Waiting
		informers = append(informers, r.mills.Informer(), r.parts.Informer())
		if r.elector.Leading() {
			c := r.controller.Stats()
			pending += c.Queue.Depth + c.Queue.Delayed + c.Queue.Processing + c.Gated
		}
	}
	for _, i := range informers {
		for _, h := range i.Status().Handlers {
			pending += h.Pending
		}
	}
	if pending > 0 {
		return fmt.Errorf("soak: %d things are left to do; %s", pending, s.leaderStats())
	}
	return nil
}
