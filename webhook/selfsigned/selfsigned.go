package selfsigned

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// fieldManager is the name of the writer in managedFields.
const fieldManager = "webhook-certificates"

const (
	defaultLifetime = 90 * 24 * time.Hour
	defaultInterval = time.Minute
	// shortestLifetime leaves time for a renewal.
	shortestLifetime = time.Hour
	// firstRetry is the pause after a failure. It doubles up to the interval.
	firstRetry = time.Second
	// mostAttempts is how often a conflict of the Secret is repeated without a pause. A quota or another webhook may
	// answer each write with a conflict.
	mostAttempts = 5
)

// errChanged reports a target that another client has changed at the same moment.
var errChanged = errors.New("selfsigned: a configuration has changed")

var secrets = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}

// Options configure a Source. Client, Secret and Hosts are required.
type Options struct {
	Client *apiclient.Client
	// Secret holds the certificate for all replicas. The Source creates it, or uses one without data. It does not
	// change a Secret with other data, because another program may need that.
	Secret api.Key
	// Hosts are the names or IP addresses under which API servers reach the webhooks: "SERVICE.NAMESPACE.svc".
	Hosts []string

	// Mutating and Validating are the names of the webhook configurations that get the authority, for all their
	// webhooks.
	Mutating, Validating []string
	// CustomResources are the names of the CustomResourceDefinitions whose conversion webhooks get the authority, such
	// as "jobs.training.example".
	CustomResources []string

	// Lifetime is how long a certificate is valid. It is renewed after two thirds of that. Zero means 90 days; the
	// shortest is an hour.
	Lifetime time.Duration
	// Interval is the time between two checks of the Secret and of the configurations. A renewal waits twice as long
	// before it uses the next certificate, so that other replicas and API servers know its authority. Zero means a
	// minute.
	Interval time.Duration
	// Logger logs each step of a renewal, and failures. Nil means the logger of the webhook server.
	Logger *zap.Logger
}

// Source is a webhook.CertificateSource that makes its certificates.
type Source struct {
	o       Options
	secrets *apiclient.TypedClient[*secret]
	targets []targets
	log     *zap.Logger
	count   func(err error) // counts a round; see UseMetrics

	ready   chan struct{} // closed when current is set
	current atomic.Pointer[tls.Certificate]

	// Only Run uses the fields below.
	published time.Time // since when all targets have the bundle of a renewal; zero if they have not
	bundle    string    // the bundle that published is about
	failed    string    // the last failure, so that it is logged once

	failure atomic.Pointer[error] // why the last round failed; nil if it has not
}

// secret is a Secret. Merge patches change no other field of it.
type secret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Type string            `json:"type"`
	Data map[string][]byte `json:"data"`
}

// New returns a Source that works when a webhook server runs it. If the options are invalid, it returns all errors,
// joined.
func New(o Options) (*Source, error) {
	var wrong []error
	if o.Client == nil || o.Secret.Name == "" || o.Secret.Namespace == "" || len(o.Hosts) == 0 {
		wrong = append(wrong, errors.New("selfsigned: Options need a Client, the namespace and the name of a Secret, and Hosts"))
	}
	if o.Lifetime == 0 {
		o.Lifetime = defaultLifetime
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Lifetime < shortestLifetime || o.Interval < 0 || o.Interval > o.Lifetime/12 {
		wrong = append(wrong, fmt.Errorf("selfsigned: Options.Lifetime must be at least %v, and Options.Interval at most a twelfth of it", shortestLifetime))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	s := &Source{
		o: o, secrets: apiclient.NewTyped[*secret](o.Client, secrets, o.Secret.Namespace), log: cmp.Or(o.Logger, zap.NewNop()),
		count: func(error) {}, ready: make(chan struct{}),
	}
	for r, names := range map[api.Resource][]string{mutating: o.Mutating, validating: o.Validating, definitions: o.CustomResources} {
		s.targets = append(s.targets, targets{apiclient.NewPartial[*target](o.Client, r, ""), names})
	}
	return s, nil
}

// UseLogger sets the logger if Options.Logger is nil. A webhook.Server calls it with its own logger. It must be called
// before Run.
func (s *Source) UseLogger(log *zap.Logger) {
	if s.o.Logger == nil {
		s.log = log
	}
}

// UseMetrics makes metrics count the reads of the Secret, and their failures, if it can: see CertificateRead of
// webhook.Observer. A webhook.Server calls it with its own observer. It must be called before Run.
func (s *Source) UseMetrics(metrics any) {
	if observer, ok := metrics.(interface{ CertificateRead(err error) }); ok {
		s.count = observer.CertificateRead
	}
}

// Certificate returns the certificate in use. It blocks until there is one or ctx ends.
func (s *Source) Certificate(ctx context.Context) (*tls.Certificate, error) {
	select {
	case <-s.ready:
		return s.current.Load(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// NotSynced returns the reason why there is no certificate yet, or nil. webhook.Server adds it to its own.
func (s *Source) NotSynced() error {
	if err := s.failure.Load(); err != nil && s.current.Load() == nil {
		return *err
	}
	return nil
}

// Run reads or creates the Secret, renews the certificate, and writes its authority into the configurations, until ctx
// ends. A failure is logged and repeated; so is the work that others have undone. Run returns nil.
func (s *Source) Run(ctx context.Context) error {
	retry := firstRetry
	for {
		pause := s.o.Interval
		err := s.round(ctx)
		if ctx.Err() == nil {
			s.count(err)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			retry, s.failed = firstRetry, ""
		default:
			s.failure.Store(&err)
			s.logFailure(err)
			pause = min(retry, pause)
			retry = min(2*retry, s.o.Interval)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Source) logFailure(err error) {
	if text := err.Error(); text != s.failed && err != errChanged {
		s.failed = text
		s.log.Warn("the certificate of the webhooks, or a configuration, could not be updated; trying again", zap.NamedError("err", err))
	}
}

// round checks everything once. It reads the targets before the Secret: if another replica changes the Secret and then
// a target, the target's version has changed, so the older bundle is not written over the newer one.
func (s *Source) round(ctx context.Context) error {
	all, unread := s.read(ctx)
	now, err := s.update(ctx, all, unread == nil)
	if err != nil {
		return errors.Join(err, unread)
	}
	wrong, changed := []error{unread}, error(nil)
	for _, t := range all {
		if len(t.wants(now.bundle)) == 0 {
			continue
		}
		switch err := t.write(ctx, now.bundle); {
		case err == nil:
			s.log.Info("wrote the authority", zap.Stringer("resource", t.client.Resource()), zap.String("name", t.Name))
		case apierrors.IsConflict(err): // mostly because another replica was faster
			changed = errChanged
		default:
			wrong = append(wrong, err)
		}
	}
	return cmp.Or(errors.Join(wrong...), changed)
}

// update brings the Secret up to date and uses its certificate. complete is set if all contains every target.
func (s *Source) update(ctx context.Context, all []found, complete bool) (state, error) {
	for attempt := 1; ; attempt++ {
		held, err := s.secrets.Get(ctx, s.o.Secret, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return state{}, err
		}
		if missing {
			held = &secret{Type: "Opaque", ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Secret.Namespace, Name: s.o.Secret.Name}}
		}
		if len(held.Data) > 0 && !isOurs(held.Data) {
			return state{}, fmt.Errorf("selfsigned: the Secret %s has data that this package did not write; delete it or use another name",
				api.FormatKey(s.o.Secret))
		}
		before := stateOf(held.Data)
		after, taken, err := before.advance(s.o.Hosts, time.Now(), s.o.Lifetime, s.isPublished(before.bundle, all, complete))
		if err != nil {
			return state{}, fmt.Errorf("make a certificate: %w", err)
		}
		if taken != none {
			err = s.store(ctx, held, after, missing)
		}
		switch {
		case attempt < mostAttempts && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)):
			continue // another replica was faster; its certificate is as good
		case err != nil:
			return state{}, err
		case taken != none:
			s.log.Info(string(taken))
		}
		return after, s.use(after)
	}
}

// isPublished reports whether all targets have had the bundle for two intervals.
func (s *Source) isPublished(bundle []byte, all []found, complete bool) bool {
	for _, t := range all {
		complete = complete && len(t.wants(bundle)) == 0
	}
	switch {
	case !complete:
		s.published = time.Time{}
	case s.published.IsZero() || s.bundle != string(bundle):
		s.published, s.bundle = time.Now(), string(bundle)
	}
	return complete && time.Since(s.published) >= 2*s.o.Interval
}

// store creates or patches the Secret, if it is still the one that was read.
func (s *Source) store(ctx context.Context, held *secret, after state, missing bool) error {
	if missing {
		held.Data = after.data()
		maps.DeleteFunc(held.Data, func(_ string, content []byte) bool { return content == nil })
		_, err := s.secrets.Create(ctx, held, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	patch, err := apiclient.MergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": held.ResourceVersion}, "data": after.data(),
	})
	if err != nil {
		return err
	}
	_, err = s.secrets.Patch(ctx, s.o.Secret, patch, apiclient.PatchOptions{FieldManager: fieldManager})
	return err
}

// use makes new connections get the current certificate of a state.
func (s *Source) use(now state) error {
	c, err := now.current.check(s.o.Hosts, time.Now())
	if err != nil {
		return err // advance has just checked it
	}
	if s.current.Swap(c) == nil {
		close(s.ready)
	}
	return nil
}
