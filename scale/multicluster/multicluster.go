package multicluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/manager"
)

// defaultDataKey is the key of the kubeconfig in the data of a Secret.
const defaultDataKey = "kubeconfig"

// Options are the options of a Set.
type Options struct {
	// Namespace is the namespace of the Secrets. Empty means all namespaces.
	Namespace string
	// Selector selects the Secrets. It must not be empty, because the set would read every Secret otherwise.
	Selector api.Selector
	// DataKey is the key of the kubeconfig in the data of a Secret. Empty means "kubeconfig".
	DataKey string
	// Kubeconfig selects the context, and overrides fields. Path, CertFile, KeyFile, Username and Password must be
	// empty. Without a policy for plugins, no plugin may run, because a plugin is a program that whoever writes the
	// Secret would choose.
	Kubeconfig kubeconfig.Options
	// Configure changes the configuration of a cluster's client before the client is made: metrics, a limiter, a
	// transport. It may use the set, and must return at once: changes of other Secrets wait for it. It may be nil.
	Configure func(cluster string, c *apiclient.Config)
	// Checks gets a check "cluster-NAME" for each cluster while its Secret exists, for example those of
	// manager.Manager.Readyz. Nil means that no check fails when a cluster does.
	Checks *manager.Checks
	// Logger receives log entries; nil means no log. A manager gives the set its own.
	Logger *zap.Logger
}

// Set has the clusters whose kubeconfigs are in Secrets.
type Set struct {
	o       Options
	secrets *informer.Informer[*secret]
	heard   informer.Registration // of changed
	active  sync.WaitGroup        // the goroutine of each member

	mu        sync.Mutex // guards the fields below
	log       *zap.Logger
	state     runstate.State
	kinds     []kind
	members   map[string]*member
	joined    int // the number of members so far
	followers map[*follower]bool
	start     func(*member) // starts the goroutine of a member; nil unless Run is active
}

// follower is a source that gets every member.
type follower struct{ join func(*member) }

// New returns a set of the clusters that Secrets name. client reads the Secrets. The error says which option is wrong.
func New(client *apiclient.Client, o Options) (*Set, error) {
	switch {
	case o.Selector == (api.Selector{}):
		return nil, errors.New("multicluster: Options.Selector is empty; the set would read every Secret")
	case o.Kubeconfig.Path != "":
		return nil, errors.New("multicluster: Options.Kubeconfig.Path is set; the kubeconfigs come from Secrets")
	case o.Kubeconfig.CertFile != "", o.Kubeconfig.KeyFile != "", o.Kubeconfig.Username != "", !o.Kubeconfig.Password.IsZero():
		return nil, errors.New("multicluster: Options.Kubeconfig has a client certificate or a password; the Secrets have the credentials")
	}
	o.DataKey = cmp.Or(o.DataKey, defaultDataKey)
	if o.Kubeconfig.Plugins.Policy.Type == "" {
		o.Kubeconfig.Plugins.Policy.Type = exec.DenyAll
	}
	s := &Set{
		o: o, log: cmp.Or(o.Logger, zap.NewNop()), members: map[string]*member{}, followers: map[*follower]bool{},
		secrets: informer.New(apiclient.NewPartial[*secret](client, secretsResource, o.Namespace), informer.Options[*secret]{
			Selector: o.Selector, Logger: o.Logger,
		}),
	}
	var err error
	s.heard, err = s.secrets.Subscribe(s.changed, informer.HandlerOptions{Name: "clusters", ResyncPeriod: -1})
	return s, err
}

// NeedLeaderElection returns false: each replica has the caches of all clusters. See manager.LeaderElectionRunnable.
func (s *Set) NeedLeaderElection() bool { return false }

// Run follows the Secrets, and runs the informers of each cluster, until ctx ends. It then waits for all its goroutines
// and drops the credentials of all clusters. Run can be called once; the next call returns informer.ErrRunning.
func (s *Set) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		return err
	}
	err := s.secrets.Run(ctx)
	cancel()
	s.mu.Lock()
	s.state, s.start = runstate.Ending, nil
	s.mu.Unlock()
	s.active.Wait()
	return err
}

func (s *Set) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != runstate.Created {
		return fmt.Errorf("multicluster: %w", informer.ErrRunning)
	}
	s.state = runstate.Running
	s.start = func(m *member) {
		s.active.Go(func() { m.run(ctx) })
	}
	return nil
}

// changed is the handler of the Secrets.
func (s *Set) changed(c api.Change[*secret]) {
	if c.Type == api.Deleted {
		s.remove(s.nameOf(c.Object))
		return
	}
	if m := s.member(c.Object); m != nil {
		m.update(c.Object)
	}
}

// nameOf returns the name of the cluster of a Secret.
func (s *Set) nameOf(object *secret) string {
	if s.o.Namespace != "" {
		return object.Name
	}
	return api.FormatKey(api.KeyOf(object))
}

// member returns the member of a Secret, which may be new, or nil if Run is ending.
func (s *Set) member(object *secret) *member {
	name := s.nameOf(object)
	s.mu.Lock()
	m, known := s.members[name]
	if known || s.start == nil {
		s.mu.Unlock()
		return m
	}
	s.joined++
	m = &member{
		set: s, name: name, number: s.joined, secret: api.KeyOf(object), log: s.log.With(zap.String("cluster", name)),
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	s.members[name] = m
	for f := range s.followers {
		f.join(m)
	}
	s.start(m)
	s.mu.Unlock()
	if s.o.Checks != nil {
		if err := s.o.Checks.Add(m.checkName(), m.check); err != nil {
			m.log.Warn("the cluster has no check", zap.NamedError("err", err))
		}
	}
	return m
}

// remove removes the cluster of a Secret that does not exist any more.
func (s *Set) remove(name string) {
	s.mu.Lock()
	m := s.members[name]
	delete(s.members, name)
	s.mu.Unlock()
	if m == nil {
		return
	}
	if s.o.Checks != nil {
		s.o.Checks.Remove(m.checkName())
	}
	m.remove()
}

// each calls join with every present member, and with every later one, until the returned function is called. join must
// not use the set.
func (s *Set) each(join func(*member)) (stop func()) {
	f := &follower{join}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		join(m)
	}
	s.followers[f] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followers, f)
	}
}

// addKind adds a resource whose informers every cluster has.
func (s *Set) addKind(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != runstate.Created {
		panic("multicluster: Inform was called after Run; call it before")
	}
	s.kinds = append(s.kinds, k)
}

func (s *Set) allKinds() []kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds
}

// Get returns a cluster, which may be unreachable; see Health. It reports false if the set has no Secret of this name,
// or if the Secret never had a valid kubeconfig.
func (s *Set) Get(name string) (*Cluster, bool) {
	s.mu.Lock()
	m := s.members[name]
	s.mu.Unlock()
	if m == nil {
		return nil, false
	}
	c := m.cluster()
	return c, c != nil
}

// current returns the members in the order of their names.
func (s *Set) current() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.members), func(a, b *member) int { return cmp.Compare(a.name, b.name) })
}

// Name is "clusters".
func (s *Set) Name() string { return "clusters" }

// UseLogger sets the logger if Options.Logger is nil. After the start of Run it has no effect.
func (s *Set) UseLogger(log *zap.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Logger != nil || s.state != runstate.Created {
		return
	}
	s.log = log
	s.secrets.UseLogger(log)
}

// Synced returns a channel that is closed when the set knows every cluster that there is at first. It does not wait for
// their objects, so an unreachable cluster does not delay it. If Run ends before, the channel is never closed.
func (s *Set) Synced() <-chan struct{} { return s.heard.Synced() }

// NotSynced returns the reason why Synced is not closed, which wraps the last error of the list of Secrets. It is nil
// afterwards.
func (s *Set) NotSynced() error {
	if runstate.IsClosed(s.Synced()) {
		return nil
	}
	return &unhealthyError{s.secrets.Status()}
}
