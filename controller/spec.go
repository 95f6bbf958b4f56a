package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/workqueue"
)

// Spec is a controller and what it watches as one value, for who would rather have an error than a panic, for instance
// because the options come from a command line. Whatever it can do, New and Watch can.
// It takes the place of TypedBuilder of controller-runtime.
type Spec[K comparable] struct {
	Name       string
	Reconciler Reconciler[K]
	// Sources must be one at least; a controller without any is made with New.
	Sources []Source[K]
	Options Options
	// Limiters are those of New.
	Limiters []workqueue.RateLimiter[K]
}

// Build returns the controller, which watches the sources, or all that is wrong, joined.
func (s Spec[K]) Build() (*Controller[K], error) {
	problems := s.problems()
	if len(s.Sources) == 0 {
		problems = append(problems, errors.New("there are no sources"))
	}
	for i, source := range s.Sources {
		if source == nil {
			problems = append(problems, fmt.Errorf("source %d is nil", i))
		}
	}
	if len(problems) > 0 {
		return nil, s.wrap(problems)
	}
	c := New(s.Name, s.Reconciler, s.Options, s.Limiters...)
	for _, source := range s.Sources {
		c.Watch(source)
	}
	return c, nil
}

// wrap joins errors, each with the name of the controller.
func (s Spec[K]) wrap(problems []error) error {
	name := s.Name
	if name == "" {
		name = "without a name"
	}
	for i, err := range problems {
		problems[i] = fmt.Errorf("controller: %s: %w", name, err)
	}
	return errors.Join(problems...)
}

// problems finds what New does not take.
func (s Spec[K]) problems() (all []error) {
	o := s.Options
	for _, check := range []struct {
		wrong  bool
		saying string
	}{
		{s.Name == "", "a name is needed"},
		{s.Reconciler == nil, "a reconciler is needed"},
		{o.Workers < 0, fmt.Sprintf("Workers must not be negative, but is %d", o.Workers)},
		{o.DefaultWorkers < 0, fmt.Sprintf("DefaultWorkers must not be negative, but is %d", o.DefaultWorkers)},
		{o.MaxRetries < 0, fmt.Sprintf("MaxRetries must not be negative, but is %d", o.MaxRetries)},
		{o.ReconcileTimeout < 0, fmt.Sprintf("ReconcileTimeout must not be negative, but is %v", o.ReconcileTimeout)},
		{o.Ageing < 0, fmt.Sprintf("Ageing must not be negative, but is %d", o.Ageing)},
		{slices.ContainsFunc(o.When, func(p anyPredicate) bool { return p == nil }), "a predicate in When is nil"},
		{slices.ContainsFunc(s.Limiters, func(l workqueue.RateLimiter[K]) bool { return l == nil }), "a limiter is nil"},
	} {
		if check.wrong {
			all = append(all, errors.New(check.saying))
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(o.KindWorkers), compareKinds) {
		if n := o.KindWorkers[kind]; n < 1 {
			all = append(all, fmt.Errorf("KindWorkers must be positive, but is %d for %s", n, kind))
		}
	}
	o.Ageing = 0
	if err := caught(func() { workqueue.New(o.queue(s.Name), s.Limiters...) }); err != nil {
		all = append(all, err)
	}
	return all
}

func compareKinds(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }

// caught returns what f panics with.
func caught(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}
