package manager

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/internal/runstate"
)

// DoNotWait is a GracePeriod with which Run stops all runnables and does not wait for their end.
const DoNotWait time.Duration = 1

const (
	defaultGracePeriod = 30 * time.Second
	defaultSyncTimeout = 2 * time.Minute
)

// Options configures a Manager. The zero value runs everything on every replica, without a server. It corresponds to
// Options of controller-runtime's manager.
type Options struct {
	// Elector makes the runnables of the groups WarmUp and Elected work on one replica at a time. Without an Elector,
	// every replica leads.
	Elector Elector
	// ElectionTolerance is how long a leader may exceed the duration of its lease before the health check "election"
	// fails. It has an effect only if the Elector is a CheckedElector. Zero means 20 s.
	ElectionTolerance time.Duration

	// GracePeriod is how long Run waits for all runnables to end, after its context has ended or a runnable has failed.
	// Zero means 30 s; a negative value means no limit; see DoNotWait.
	GracePeriod time.Duration
	// SyncTimeout is how long servers may take to listen, and caches to hold their first lists, before Run fails. It
	// also limits how long a replica waits for the group WarmUp; then it campaigns anyway, because controllers have
	// their own timeout. Zero means 2 minutes; a negative value means no limit.
	SyncTimeout time.Duration

	// Admin configures the server of health checks and metrics. The server is off without an address or a listener.
	Admin AdminOptions
	// ShowReasons adds the errors of checks to the answers of /healthz, /livez and /readyz. Without it they say "reason
	// withheld", because a client that may read the health of a program need not be allowed to read its errors.
	ShowReasons bool

	// Logger receives log entries; nil means no log. Each runnable without a logger of its own also uses it.
	Logger *zap.Logger
	// Metrics registers the metrics of the elector and of each runnable that is added, under its name, until it ends.
	// Nil means none.
	Metrics MetricsRegistry
}

// Manager runs the parts of a program. It starts them in order, and ends them in reverse order when its context ends or
// a part fails. It corresponds to Manager of controller-runtime.
type Manager struct {
	o       Options
	log     *zap.Logger
	elected chan struct{} // closed when this replica leads

	healthz, livez, readyz *Checks

	mu       sync.Mutex // guards the fields below, and the fields of the registrations
	life     runstate.State
	launch   func(*RunnableRegistration) // starts a runnable; set by Run
	halt     context.CancelFunc          // makes Run end; set by Run
	hurry    context.CancelFunc          // makes Run stop waiting; nil before the end
	endBy    *time.Time                  // when bounded runnables have to end; zero is no limit, nil that Run does not wait
	started  [election + 1]bool          // groups that have started
	told     [election + 1]bool          // groups that were stopped
	lost     error                       // why this replica lost the lease; nil if it has not
	members  []*RunnableRegistration     // runnables that have not ended, in the order of their adds
	failures []error                     // the errors that Run will return
}

// New returns a manager that does nothing until Run. The error says which option is invalid, or why the metrics of the
// elector cannot be registered.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	m := &Manager{o: o, log: cmp.Or(o.Logger, zap.NewNop()), elected: make(chan struct{})}
	checks := func(name string) *Checks { return newChecks(name, o.ShowReasons, m.log) }
	m.healthz, m.livez, m.readyz = checks("healthz"), checks("livez"), checks("readyz")
	m.addOwnChecks()
	if !o.Admin.off() {
		admin, err := NewServer("admin", o.Admin.server(m.AdminHandler(o.Admin), m.log))
		if err != nil {
			return nil, err
		}
		member := newRegistration(m, admin, admin.Name(), Servers)
		member.equipped = true
		m.members = append(m.members, member)
	}
	if _, err := register(o.Admin.Page, "manager", m); err != nil {
		return nil, err
	}
	if o.Elector != nil { // last, because an error after it would leave the metrics registered
		remove, err := m.equip("election", o.Elector)
		if err != nil {
			return nil, err
		}
		member := newRegistration(m, Func(m.elect), "election", election)
		member.equipped, member.unregister = true, remove
		m.members = append(m.members, member)
	}
	return m, nil
}

func (o Options) withDefaults() Options {
	if o.GracePeriod == 0 {
		o.GracePeriod = defaultGracePeriod
	}
	if o.SyncTimeout == 0 {
		o.SyncTimeout = defaultSyncTimeout
	}
	if o.ElectionTolerance == 0 {
		o.ElectionTolerance = 20 * time.Second
	}
	return o
}

// Elected returns a channel that is closed when this replica leads and the group Elected has started. Without an
// Elector, it is closed when all groups have started.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// Healthz, Livez and Readyz return the checks that the admin server serves at the path of that name. Checks may be
// added at any time. Readyz contains checks that fail while a cache is not synced and while the manager is ending.
func (m *Manager) Healthz() *Checks { return m.healthz }

// Livez returns the checks of /livez; see Healthz.
func (m *Manager) Livez() *Checks { return m.livez }

// Readyz returns the checks of /readyz; see Healthz.
func (m *Manager) Readyz() *Checks { return m.readyz }

// Placement sets the name and the group of a runnable. The zero value chooses both by the type of the runnable.
type Placement struct {
	// Name is the unique name of the runnable in logs and errors. Empty means that of a Named runnable. For others, the
	// manager makes up a name and adds a number if it is taken.
	Name string
	// Group decides when the runnable starts and ends. Zero means Caches for an informer or a factory, Servers for a
	// Server or a recorder, WarmUp for a controller, Others for a LeaderElectionRunnable that works on every replica,
	// and Elected for the rest. So a controller reconciles only on the leader.
	Group Group
}

// Add adds each runnable like AddWith with the zero Placement. It stops at the first error.
func (m *Manager) Add(runnables ...Runnable) error {
	for _, r := range runnables {
		if _, err := m.AddWith(r, Placement{}); err != nil {
			return err
		}
	}
	return nil
}

// AddWith makes the manager run r when its group starts, or now if the group has started. It does not block. The error
// is ErrStopped if the manager is ending, ErrTwice if r was added before, or ErrNameTaken. The name of a runnable that
// has ended is free.
func (m *Manager) AddWith(r Runnable, p Placement) (*RunnableRegistration, error) {
	if r == nil {
		panic("manager: AddWith needs a runnable")
	}
	if s, shared := r.(sharedInformer); shared {
		return nil, fmt.Errorf("manager: a factory runs the share of the informer of %v; add the factory instead", s.Status().Resource)
	}
	if p.Group == election || p.Group < 0 || p.Group > election {
		return nil, fmt.Errorf("manager: Placement.Group is %d, which does not exist", p.Group)
	}
	if p.Group == 0 {
		p.Group = groupOf(r)
	}
	if _, ok := r.(WarmUpRunnable); p.Group == WarmUp && !ok {
		return nil, fmt.Errorf("manager: %T has no method RunHeld, which the group warm-up needs; use the group elected", r)
	}
	member, err := m.reserve(r, p)
	if err != nil {
		return nil, err
	}
	remove, err := m.equip(member.name, r)
	if !m.admit(member, remove, err == nil) {
		m.dispose(member)
		return nil, cmp.Or(err, ErrStopped)
	}
	return member, nil
}

// reserve adds a runnable that does not start yet. Its name is taken from now on.
func (m *Manager) reserve(r Runnable, p Placement) (*RunnableRegistration, error) {
	name, given := nameOf(r, p.Name)
	member := newRegistration(m, r, name, p.Group)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life >= runstate.Ending {
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
	return member, nil
}

// admit lets a runnable start after equip, which ran without the lock because it calls code of the user. It reports
// whether the runnable may start; it may not if equip has failed or the manager is ending.
func (m *Manager) admit(r *RunnableRegistration, unregister func(), ok bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.unregister = unregister
	if !ok || r.over || m.life >= runstate.Ending {
		r.over = true
		return false
	}
	r.equipped = true
	if m.started[r.group] {
		m.launch(r)
	}
	return true
}

// equip gives a runnable the logger of the manager, and adds it to the metrics, to the page and to the readiness
// checks. The returned function removes it from them. The caller does not hold the lock.
func (m *Manager) equip(name string, r any) (remove func(), err error) {
	if user, ok := r.(LoggerUser); ok && m.o.Logger != nil {
		user.UseLogger(m.o.Logger)
	}
	shown, err := register(m.o.Admin.Page, name, r)
	if err != nil {
		return nil, err
	}
	measured, err := register(m.o.Metrics, name, r)
	if err != nil {
		shown()
		return nil, err
	}
	unshow := func() {
		measured()
		shown()
	}
	ready, ok := r.(ReadyRunnable)
	if !ok {
		return unshow, nil
	}
	if err := m.readyz.Add(name, ready.Ready); err != nil {
		unshow()
		return nil, err
	}
	return func() {
		m.readyz.Remove(name)
		unshow()
	}, nil
}

// register adds a runnable to a registry, which may be nil.
func register(to MetricsRegistry, name string, r any) (remove func(), err error) {
	if to == nil {
		return func() {}, nil
	}
	if remove, err = to.Register(name, r); err != nil {
		return nil, fmt.Errorf("manager: %s: %w", name, err)
	}
	return remove, nil
}

// nameOf returns the name of a runnable, and reports whether the user chose it.
func nameOf(r Runnable, name string) (string, bool) {
	if name != "" {
		return name, true
	}
	switch named := r.(type) {
	case Named:
		if name := named.Name(); name != "" {
			return name, true
		}
	case InformerRunnable:
		return "informer of " + named.Status().Name, false
	case FactoryRunnable:
		return "informers", false
	case fmt.Stringer:
		return named.String(), false
	}
	return fmt.Sprintf("%T", r), false
}

// numbered adds a number to a name that is taken.
func (m *Manager) numbered(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(m.members, func(r *RunnableRegistration) bool { return r.name == free }); n++ {
		free = fmt.Sprintf("%s #%d", name, n)
	}
	return free
}

// same reports whether two runnables are the same. Only pointers can be.
func same(a, b Runnable) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
