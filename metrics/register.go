package metrics

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// factory is the part of *factory.Factory that metrics need.
type factory interface {
	ObserveInformers(f func(informer.Any)) (stop func())
}

// Register shows a controller, an informer, a factory with all its informers, a recorder, an elector, a gate, a mask, a
// member of a shard group or a recording, until remove is called. A value with a method UseMetrics(metrics any), such
// as a webhook server, gets m, and its counters stay. A value of another type has no metrics. A value that is shown
// already stays as it is; remove then does nothing. An informer is shown under the name in its Status, a member under
// its group, a controller, a recorder and an elector under their own names, and anything else under the given name. An
// informer gets a number if its name is taken; for others the error is ErrNameTaken. Register implements
// MetricsRegistry of package manager.
func (m *Metrics) Register(name string, r any) (remove func(), err error) {
	if f, ok := r.(factory); ok {
		return m.factory(f), nil
	}
	if user, ok := r.(interface{ UseMetrics(metrics any) }); ok {
		user.UseMetrics(m)
		return func() {}, nil
	}
	if m.shows(r) {
		return func() {}, nil
	}
	var added *CollectorRegistration
	switch r := r.(type) {
	case Controller:
		added, err = m.Controller(r)
	case Informer:
		added, err = m.numberedInformer(r)
	case Recorder:
		if own, ok := r.(interface{ ReportingController() string }); ok {
			name = own.ReportingController()
		}
		added, err = m.Recorder(name, r)
	case Elector:
		if own, ok := r.(interface{ Lease() api.Key }); ok {
			name = api.FormatKey(own.Lease())
		}
		added, err = m.Elector(name, r)
	case Gate:
		added, err = m.Gate(name, r)
	case *codec.Mask:
		added, err = m.Mask(name, r)
	case Shard:
		added, err = m.Shard(r)
	case recordingTotals:
		added, err = m.recording(name, r)
	}
	if added == nil {
		return func() {}, err
	}
	return added.Remove, err
}

// shows reports whether r is a member under any name.
func (m *Metrics) shows(r any) bool {
	return slices.ContainsFunc(m.present(), func(other member) bool { return api.Identical(other.subject(), r) })
}

// numberedInformer shows an informer, with a number after its name if the name is taken.
func (m *Metrics) numberedInformer(i Informer) (r *CollectorRegistration, err error) {
	name := i.Status().Name
	r, err = m.Informer(name, i)
	for n := 2; errors.Is(err, ErrNameTaken); n++ {
		r, err = m.Informer(fmt.Sprintf("%s #%d", name, n), i)
	}
	return r, err
}

// factory shows every present and future informer of a factory until the returned function is called.
func (m *Metrics) factory(f factory) (remove func()) {
	type shownShare struct {
		registration *CollectorRegistration
		stopped      <-chan struct{}
	}
	var mu sync.Mutex // guards the variables below
	var removed bool
	var shown []shownShare
	stop := f.ObserveInformers(func(i informer.Any) {
		mu.Lock()
		defer mu.Unlock()
		if removed || m.shows(i) { // the end of the observation does not wait for this call
			return
		}
		r, err := m.numberedInformer(i)
		if err != nil {
			return // the name is not UTF-8
		}
		shown = slices.DeleteFunc(shown, func(s shownShare) bool { return runstate.IsClosed(s.stopped) })
		shown = append(shown, shownShare{r, i.Stopped()})
	})
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		for _, s := range shown {
			s.registration.Remove()
		}
		removed, shown = true, nil
	}
}
