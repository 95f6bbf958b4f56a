package livepage

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/internal/sameorigin"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/workqueue"
)

// Options configure a Page. The zero value is a good default.
type Options struct {
	// Program is the name in the title. Empty means the name of the executable.
	Program string
	// AllowedHosts are more hosts under which the page may be reached, for instance through a proxy: "name", which
	// allows any port, or "name:port". Others are localhost and IP addresses.
	AllowedHosts []string
	// OtherMachines lets clients on other machines read the page. By default, the page answers only clients on
	// loopback, also if its server listens on all interfaces. A port-forward of kubectl comes from loopback. So does
	// every request through a sidecar or a reverse proxy on this machine or in this pod, from any client: such a proxy
	// must not forward the path of the page, or must check its users.
	OtherMachines bool
}

// Page shows what a program does at the moment. It implements StatePage of package manager.
type Page struct {
	o       Options
	guard   *sameorigin.Guard
	started time.Time

	follower follower

	mu          sync.Mutex // guards the fields below
	managed     managed    // nil without a manager
	informers   []*shownInformer
	controllers []*shownController
	queues      []shown[queue]
	electors    []shown[elector]
	shards      []shown[sharded]
	gates       []shown[gate]
	actions     []*Action
	held        func() []Held // what the program holds back; nil if nothing
	guide       *guide        // the walkthrough; nil without one
	viewer      viewer

	checksMu   sync.Mutex // guards the fields below
	checked    []healthState
	checkedAt  time.Time // when the last round of checks began
	isChecking bool      // a request runs the checks
}

// shown is a part of the program under its name on the page.
type shown[T any] struct {
	name string
	part T
}

// The parts of a program that a page can show.
type (
	// managed is the part of *manager.Manager that the page needs.
	managed interface {
		Elected() <-chan struct{}
		Healthz() *manager.Checks
		Livez() *manager.Checks
		Readyz() *manager.Checks
	}
	// reconciling is the part of *controller.Controller[K] that the page needs. Others are optional: see the interfaces
	// in the methods of shownController.
	reconciling interface {
		Name() string
		Stats() controller.Stats
	}
	factory interface {
		ObserveInformers(f func(informer.Any)) (stop func())
	}
	queue interface {
		Name() string
		Stats() workqueue.Stats
	}
	elector interface {
		Leading() bool
		Leader() string
		Identity() string
		Lease() api.Key
	}
	gate    interface{ Stats() cachedclient.GateStats }
	sharded interface{ Status() shard.Status }
)

// New returns a page that shows nothing yet. The error says which of the allowed hosts is invalid.
func New(o Options) (*Page, error) {
	guard, err := sameorigin.New(o.AllowedHosts)
	if err != nil {
		return nil, fmt.Errorf("livepage: Options.AllowedHosts: %w", err)
	}
	if o.Program == "" {
		o.Program = executable()
	}
	p := &Page{o: o, guard: guard, started: time.Now()}
	p.viewer.page = p
	p.follower = follower{page: p, objects: map[place]*followed{}}
	return p, nil
}

// Register shows a controller, an informer, a factory with all its informers, a workqueue, an elector, a gate, a member
// of a shard group or a manager, until remove is called. A value of another type is not shown, and that is no error. A
// name that is taken gets a number. An informer is shown under the name in its Status, a controller and a queue under
// their own names, and anything else under the given name. The error is always nil; it is part of MetricsRegistry of
// package manager.
func (p *Page) Register(name string, r any) (remove func(), err error) {
	switch r := r.(type) {
	case managed:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.managed = r
	case factory:
		return p.showFactory(r), nil
	case informer.Any:
		return p.showInformer(r, false), nil
	case reconciling:
		return p.showController(r), nil
	case queue:
		return show(p, &p.queues, r.Name(), queue(r)), nil
	case elector:
		return show(p, &p.electors, name, elector(r)), nil
	case sharded:
		return show(p, &p.shards, name, sharded(r)), nil
	case gate:
		return show(p, &p.gates, name, gate(r)), nil
	}
	return func() {}, nil
}

// show adds a part to a list until the returned function is called.
func show[T any](p *Page, list *[]shown[T], name string, part T) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = freeName(name, func(n string) bool {
		return slices.ContainsFunc(*list, func(s shown[T]) bool { return s.name == n })
	})
	*list = append(*list, shown[T]{name, part})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*list = slices.DeleteFunc(*list, func(s shown[T]) bool { return s.name == name })
	}
}

// freeName returns a name, with a number if it is taken.
func freeName(name string, taken func(string) bool) string {
	free := name
	for n := 2; taken(free); n++ {
		free = fmt.Sprintf("%s #%d", name, n)
	}
	return free
}

// showFactory shows the present and future informers of a factory until the returned function is called.
func (p *Page) showFactory(f factory) (remove func()) {
	var mu sync.Mutex // guards the variables below
	var removed bool
	var added []func()
	stop := f.ObserveInformers(func(i informer.Any) {
		mu.Lock()
		defer mu.Unlock()
		if !removed {
			added = append(added, p.showInformer(i, true))
		}
	})
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		for _, remove := range added {
			remove()
		}
		removed, added = true, nil
	}
}

// showInformer shows an informer. A transient one is removed when it has stopped.
func (p *Page) showInformer(i informer.Any, transient bool) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropStopped()
	if slices.ContainsFunc(p.informers, func(s *shownInformer) bool { return s.informer == i }) {
		return func() {}
	}
	name := freeName(i.Status().Name, func(n string) bool {
		return slices.ContainsFunc(p.informers, func(s *shownInformer) bool { return s.name == n })
	})
	s := &shownInformer{name: name, informer: i, transient: transient}
	p.informers = append(p.informers, s)
	if p.viewer.looks {
		s.attach()
	}
	p.follower.renew()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.detach()
		p.informers = slices.DeleteFunc(p.informers, func(other *shownInformer) bool { return other == s })
		p.follower.renew()
	}
}

// dropStopped forgets the informers of factories that have stopped. The caller holds the lock.
func (p *Page) dropStopped() {
	p.informers = slices.DeleteFunc(p.informers, func(s *shownInformer) bool {
		gone := s.transient && runstate.IsClosed(s.informer.Stopped())
		if gone {
			s.detach()
		}
		return gone
	})
}

func (p *Page) showController(c reconciling) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := freeName(c.Name(), func(n string) bool {
		return slices.ContainsFunc(p.controllers, func(s *shownController) bool { return s.name == n })
	})
	s := &shownController{name: name, controller: c}
	p.controllers = append(p.controllers, s)
	if p.viewer.looks {
		s.attach()
	}
	p.follower.renew()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.detach()
		p.controllers = slices.DeleteFunc(p.controllers, func(other *shownController) bool { return other == s })
		p.follower.renew()
	}
}

// Handler returns the page as a handler for the root of a path, so use http.StripPrefix below another path. With debug,
// the page also shows what /debug/controllers/ and /debug/why/ of package manager show: keys of objects, and the texts
// of errors. It also shows the fields of an object that somebody searches for, without the values of Secrets, and has
// the actions. Without debug, the page shows only numbers, names of resources and states.
//
// The handler rejects requests of web pages of other origins, clients on other machines unless Options.OtherMachines is
// set, and methods that it does not know.
func (p *Page) Handler(debug bool) http.Handler {
	mux := http.NewServeMux()
	serveAssets(mux, "main.js")
	if debug {
		p.serveObjects(mux)
		p.serveActions(mux)
		p.serveWalkthrough(mux)
	} else {
		refuseDebug(mux)
	}
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, http.StatusOK, p.state(r, debug)) })
	return p.guarded(mux)
}
