package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"

	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/internal/extension"
)

// Options are the settings of a Chain.
type Options struct {
	// Enabled are plugins that must exist, and Disabled those that are off, by the names of kube-apiserver. Plugins
	// that are not disabled are on.
	Enabled, Disabled []string
	// Authorizer answers what expressions and plugins ask about users.
	Authorizer authorizer.Authorizer
	// Dial connects to webhooks. Nil means the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Service returns the address (host:port) of a service that a webhook names. Nil means its name in the DNS of a
	// cluster.
	Service func(namespace, name string, port int32) (string, error)
	// Check is called after mutating admission: the rules that kube-apiserver has outside of admission. Nil means none.
	Check func(context.Context, *extension.Attributes) error
}

// Chain is the admission of a server.
type Chain struct {
	options    Options
	factory    *informers.Factory
	builtins   *builtins // nil if they are off
	mutating   []mutator
	validating []validator
	quota      *quotas // nil if it is off
	dialer     *dialer
}

// configured is a plugin that does what objects in the server say. It reads the tree of an object.
type configured interface {
	// idle reports whether there is no such object.
	idle() bool
}

type mutator interface {
	configured
	apiadmission.MutationInterface
}

type validator interface {
	configured
	apiadmission.ValidationInterface
}

var _ extension.Admission = (*Chain)(nil)

// names are the plugins in the order of kube-apiserver.
var names = slices.Concat(builtinNames, []string{policyMutation, webhookMutation, policyValidation, webhookValidation, quotaName})

// New returns the admission of a server. It fails if the options have a name that is not a plugin.
func New(f *informers.Factory, o Options) (*Chain, error) {
	on := slices.Clone(names)
	for _, name := range o.Enabled {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("admission: enable %q: the plugins are %s", name, strings.Join(names, ", "))
		}
	}
	for _, name := range o.Disabled {
		n := slices.Index(on, name)
		if n < 0 {
			return nil, fmt.Errorf("admission: disable %q: the plugins are %s", name, strings.Join(names, ", "))
		}
		on = slices.Delete(on, n, n+1)
	}
	c := &Chain{options: o, factory: f, dialer: newDialer(o.Dial)}
	var err error
	if c.builtins, err = newBuiltins(f, o, on); err != nil {
		return nil, err
	}
	c.addDynamic(on)
	if slices.Contains(on, quotaName) {
		if c.quota, err = newQuotas(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// addDynamic adds webhooks and policies.
func (c *Chain) addDynamic(on []string) {
	has := func(name string) bool { return slices.Contains(on, name) }
	if has(policyMutation) {
		c.mutating = append(c.mutating, newMutatingPolicies(c.factory, c.options.Authorizer))
	}
	if has(webhookMutation) {
		c.mutating = append(c.mutating, c.newMutatingWebhooks())
	}
	if has(policyValidation) {
		c.validating = append(c.validating, newValidatingPolicies(c.factory, c.options.Authorizer))
	}
	if has(webhookValidation) {
		c.validating = append(c.validating, c.newValidatingWebhooks())
	}
}

// Mutate implements extension.Admission.
func (c *Chain) Mutate(ctx context.Context, a *extension.Attributes) error {
	c.factory.Refresh()
	unread := !slices.ContainsFunc(c.mutating, func(p mutator) bool { return !p.idle() })
	var err error
	if !unread || c.builtins.concern(a) {
		r := c.request(a)
		r.unread = unread
		err = c.mutate(warning.WithWarningRecorder(ctx, r), r)
		r.finish()
	}
	if err == nil && c.options.Check != nil {
		err = c.options.Check(ctx, a)
	}
	return err
}

// mutate calls the plugins, a second time if one of them wants to see what later ones changed.
func (c *Chain) mutate(ctx context.Context, r *request) error {
	err := c.admit(ctx, r)
	if err == nil && r.Attributes.GetReinvocationContext().ShouldReinvoke() {
		r.GetReinvocationContext().SetIsReinvoke()
		err = c.admit(ctx, r)
	}
	return err
}

func (c *Chain) admit(ctx context.Context, r *request) error {
	if c.builtins != nil {
		if err := c.builtins.Admit(ctx, r, r); err != nil {
			return err
		}
	}
	if r.unread {
		return nil
	}
	for _, plugin := range c.mutating {
		if plugin.idle() || !plugin.Handles(r.GetOperation()) {
			continue
		}
		if err := plugin.Admit(ctx, r, r); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements extension.Admission.
func (c *Chain) Validate(ctx context.Context, a *extension.Attributes) error {
	if isSystemClass(a) {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Key.Name, errSystemClass)
	}
	active := c.active()
	if len(active) == 0 && !c.builtins.concern(a) && c.quota.idle() {
		return nil
	}
	r := c.request(a)
	ctx = warning.WithWarningRecorder(ctx, r)
	defer r.finish()
	if c.builtins != nil {
		if err := c.builtins.Validate(ctx, r, r); err != nil {
			return err
		}
	}
	for _, plugin := range active {
		if !plugin.Handles(r.GetOperation()) {
			continue
		}
		if err := plugin.Validate(ctx, r, r); err != nil {
			return err
		}
	}
	if c.quota == nil || !c.quota.Handles(r.GetOperation()) {
		return nil
	}
	return c.quota.Validate(ctx, r, r)
}

// active returns the validating plugins that have something to do.
func (c *Chain) active() (out []validator) {
	for _, p := range c.validating {
		if !p.idle() {
			out = append(out, p)
		}
	}
	return out
}

var errSystemClass = errors.New("this is a system priority class and cannot be deleted")

// isSystemClass reports whether a request deletes a priority class of the system. kube-apiserver refuses that in its
// storage, where a deletion of a collection does not come by.
func isSystemClass(a *extension.Attributes) bool {
	if a.Verb != "delete" || a.Resource.GroupResource() != priorityClasses {
		return false
	}
	return slices.ContainsFunc(scheduling.SystemPriorityClasses(), func(c *schedulingv1.PriorityClass) bool { return c.Name == a.Key.Name })
}

// Run keeps the usage in the status of quotas until ctx ends, and then closes the connections to webhooks. It may be
// called again.
func (c *Chain) Run(ctx context.Context) error {
	c.dialer.reopen()
	defer c.dialer.close()
	if c.quota == nil {
		<-ctx.Done()
		return nil
	}
	return c.quota.run(ctx)
}
