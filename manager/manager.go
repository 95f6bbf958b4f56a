package manager

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// The defaults of Options, and what its GracePeriod is where nobody wants to wait.
const (
	DefaultGracePeriod = 30 * time.Second
	DefaultSyncTimeout = 2 * time.Minute
	// DoNotWait is a GracePeriod for those who leave: everything is told to end, and nothing is waited for.
	DoNotWait time.Duration = 1
)

// Runnable is what a Manager runs: a controller, an informer, a factory, a recorder, a server.
// It corresponds to Runnable of controller-runtime.
type Runnable interface {
	// Run blocks until ctx ends and nothing is left of what it started. An error ends the manager. So does, for what
	// others rest on, the groups Servers and Caches, to return nil before ctx ends; anything else may come to its end.
	Run(ctx context.Context) error
}

// Func is a Runnable that is a function.
type Func func(ctx context.Context) error

// Run calls f.
func (f Func) Run(ctx context.Context) error { return f(ctx) }

// Elector decides which replica leads. *leaderelection.Elector is one.
type Elector interface {
	// Run calls lead once this replica leads, with a context that ends with ctx and when it leads no more, in the latter
	// case with the reason as its cause, and returns after lead has: the lease is given up then and not before.
	Run(ctx context.Context, lead func(ctx context.Context) error) error
}

// Options of a Manager. The zero value runs everything on every replica, without a server.
// It corresponds to Options of controller-runtime's manager.
type Options struct {
	// Elector has the runnables of the groups WarmUp and Elected run, in earnest, on one replica at a time. Without one
	// every replica leads.
	Elector Elector
	// ElectionTolerance is by how much a leader may exceed the duration of its lease before the health check that has
	// the name "election" fails, if the Elector has a method Check(tolerance time.Duration) error. Zero means 20 s.
	ElectionTolerance time.Duration

	// GracePeriod is how long Run waits for everything to end, after the end of its context or a failure. Zero means
	// 30 s, a negative value for ever; see DoNotWait.
	GracePeriod time.Duration
	// SyncTimeout is how long servers may take to listen, and caches to hold their first lists, before Run gives up. What
	// warms up is waited for no longer either, but a replica campaigns then all the same: controllers have a time-out of
	// their own. Zero means 2 minutes, a negative value for ever.
	SyncTimeout time.Duration

	// Admin is the server of health checks, metrics and the like. It is off unless it has an address or a listener.
	Admin AdminOptions
	// ShowReasons is that of ChecksOptions, for Healthz, Livez and Readyz.
	ShowReasons bool

	// Logger is silent when nil.
	Logger *zap.Logger
}

// Manager runs what a program consists of: in order, until its context ends or something fails, and ends it in the
// opposite order.
// It corresponds to Manager of controller-runtime.
type Manager struct {
	o       Options
	log     *zap.Logger
	elected chan struct{} // closed when this replica leads

	healthz, livez, readyz *Checks

	mu       sync.Mutex // guards the fields below, and those of the registrations
	life     lifecycle
	launch   func(*Registration) // starts a runnable; set by Run
	halt     context.CancelFunc  // makes Run end; set by Run
	hurry    context.CancelFunc  // makes Run wait no longer; nil until it is ending
	started  [election + 1]bool  // groups that have been started
	told     [election + 1]bool  // groups that have been told to end
	lost     error               // why this replica leads no more; nil unless it has and does not
	members  []*Registration     // those that have not ended, in the order they came
	failures []error             // what Run will return
}

type lifecycle int

const (
	created lifecycle = iota
	running
	ending // Run has been told to end, and waits for what it started
	ended
)

// New returns a manager that does nothing until Run. It reports all that is wrong with its options.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	m := &Manager{o: o, log: o.Logger, elected: make(chan struct{})}
	checks := ChecksOptions{ShowReasons: o.ShowReasons, Logger: o.Logger}
	m.healthz, m.livez, m.readyz = NewChecks("healthz", checks), NewChecks("livez", checks), NewChecks("readyz", checks)
	m.addOwnChecks()
	if o.Elector != nil {
		m.members = append(m.members, newRegistration(m, Func(m.elect), "election", election))
	}
	if o.Admin.off() {
		return m, nil
	}
	admin, err := NewServer("admin", o.Admin.server(m.AdminHandler(o.Admin), o.Logger))
	if err != nil {
		return nil, err
	}
	m.members = append(m.members, newRegistration(m, admin, admin.Name(), Servers))
	return m, nil
}

func (o Options) withDefaults() Options {
	if o.GracePeriod == 0 {
		o.GracePeriod = DefaultGracePeriod
	}
	if o.SyncTimeout == 0 {
		o.SyncTimeout = DefaultSyncTimeout
	}
	if o.ElectionTolerance == 0 {
		o.ElectionTolerance = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// Elected is closed when this replica leads, and what only the leader runs has been started; without an Elector, once
// everything has.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// Healthz, Livez and Readyz are the checks that the admin server answers from, at the path of that name. Checks may be
// added to them at any time. Readyz asks, from the beginning, whether the caches are synced and the manager is not ending.
func (m *Manager) Healthz() *Checks { return m.healthz }

// Livez is described at Healthz.
func (m *Manager) Livez() *Checks { return m.livez }

// Readyz is described at Healthz.
func (m *Manager) Readyz() *Checks { return m.readyz }

// Placement says where a runnable belongs. The zero value leaves that to what it is.
type Placement struct {
	// Name stands in logs and errors, and no two runnables have one name. Empty means what its method Name() string says
	// or, if it has none, something made up, which need not be unique: numbers are added to it.
	Name string
	// Group says when it starts and ends. Zero means Caches for an informer or a factory, Servers for a Server or a
	// recorder, WarmUp for controllers, which thereby reconcile on the leader alone, and Elected for anything else.
	Group Group
}

// Add adds runnables, each as AddWith with the zero Placement does, and stops at the first that cannot be added.
func (m *Manager) Add(runnables ...Runnable) error {
	for _, r := range runnables {
		if _, err := m.AddWith(r, Placement{}); err != nil {
			return err
		}
	}
	return nil
}

// AddWith has the manager run r: from when its group starts or, once it has, from now on. It does not block. The errors
// are ErrStopped, when the manager is ending, and those of a name or a runnable that is there already. One that has ended
// is not, so that its name is free.
func (m *Manager) AddWith(r Runnable, p Placement) (*Registration, error) {
	if r == nil {
		panic("manager: AddWith needs a runnable")
	}
	if s, shared := r.(interface {
		cached
		Release()
	}); shared {
		return nil, fmt.Errorf("manager: a share of the informer of %v is run by its factory: add that", s.Status().Resource)
	}
	if p.Group == election || p.Group < 0 || p.Group > election {
		return nil, fmt.Errorf("manager: there is no group %d", p.Group)
	}
	if p.Group == 0 {
		p.Group = groupOf(r)
	}
	if _, ok := r.(held); p.Group == WarmUp && !ok {
		return nil, fmt.Errorf("manager: %T has no method RunHeld, so that nothing would hold it: it is for the group elected", r)
	}
	name, given := nameOf(r, p.Name)
	member := newRegistration(m, r, name, p.Group)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life >= ending {
		return nil, ErrStopped
	}
	for _, other := range m.members {
		switch {
		case same(other.runnable, r):
			return nil, fmt.Errorf("%w: %s", ErrTwice, other.name)
		case given && other.name == name:
			return nil, fmt.Errorf("%w: %q", ErrNameTaken, name)
		}
	}
	if !given {
		member.name = m.numbered(name)
	}
	m.members = append(m.members, member)
	if m.started[member.group] {
		m.launch(member)
	}
	return member, nil
}

// nameOf returns the name of a runnable, and whether somebody has given it.
func nameOf(r Runnable, name string) (string, bool) {
	if name != "" {
		return name, true
	}
	switch named := r.(type) {
	case interface{ Name() string }:
		if name := named.Name(); name != "" {
			return name, true
		}
	case cached:
		return "informer of " + named.Status().Resource.String(), false
	}
	return fmt.Sprintf("%T", r), false
}

// numbered adds a number to a name that is taken.
func (m *Manager) numbered(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(m.members, func(r *Registration) bool { return r.name == free }); n++ {
		free = fmt.Sprintf("%s #%d", name, n)
	}
	return free
}

// same tells whether two runnables are one. Only pointers have an identity.
func same(a, b Runnable) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
