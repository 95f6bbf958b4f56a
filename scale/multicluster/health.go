package multicluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// Health describes one cluster.
type Health struct {
	Cluster string
	Secret  api.Key
	// Server is the URL of the server. It is empty if the Secret never had a valid kubeconfig.
	Server string
	// Synced reports whether every informer of the cluster has its first list.
	Synced bool
	// Err is the reason why the cluster is not healthy: the kubeconfig is invalid, an informer is not synced, or its
	// last request failed. It is nil for a healthy cluster.
	Err error
	// Informers are the informers of Inform, in the order of its calls.
	Informers []informer.Status
}

// Health returns the state of each cluster, ordered by name.
func (s *Set) Health() []Health {
	var all []Health
	for _, m := range s.current() {
		all = append(all, m.health())
	}
	return all
}

// Check returns an error that names each cluster that is not healthy, and the reason. It is a manager.Check:
//
//	err := m.Readyz().Add("clusters", set.Check)
//
// Options.Checks adds a check for each cluster instead.
func (s *Set) Check(context.Context) error {
	var all []error
	for _, h := range s.Health() {
		if h.Err != nil {
			all = append(all, fmt.Errorf("cluster %s: %w", h.Cluster, h.Err))
		}
	}
	return errors.Join(all...)
}

// Status returns the state of the informer of Secrets, and of each informer of each cluster. It makes the set a
// manager.FactoryRunnable, whose default group is manager.Caches.
func (s *Set) Status() []informer.Status {
	all := []informer.Status{s.secrets.Status()}
	for _, h := range s.Health() {
		for _, status := range h.Informers {
			status.Name = h.Cluster + ": " + status.Name
			all = append(all, status)
		}
	}
	return all
}

func (m *member) checkName() string { return "cluster-" + m.name }

// check is the manager.Check of the member.
func (m *member) check(context.Context) error { return m.health().Err }

func (m *member) health() Health {
	m.mu.Lock()
	c, invalid := m.current, m.invalid
	m.mu.Unlock()
	h := Health{Cluster: m.name, Secret: m.secret}
	why := []error{invalid}
	if c != nil {
		h.Server, h.Synced = c.Client().Host(), true
		why = append(why, c.failure())
		for _, k := range m.set.allKinds() {
			status, present := k.status(c)
			if !present {
				h.Synced = false
				continue
			}
			h.Informers = append(h.Informers, status)
			h.Synced = h.Synced && status.Synced
			if !status.Synced || status.Reflector.Err != nil {
				why = append(why, &unhealthyError{status})
			}
		}
	}
	if c == nil && invalid == nil {
		why = append(why, errors.New("multicluster: it has not joined yet"))
	}
	h.Err = errors.Join(why...)
	return h
}

// unhealthyError is the error of an informer that is not synced or whose last request failed.
type unhealthyError struct{ status informer.Status }

// Error returns the status of the informer.
func (e *unhealthyError) Error() string { return e.status.String() }

// Unwrap returns the error of its last request.
func (e *unhealthyError) Unwrap() error { return e.status.Reflector.Err }
