package namespaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
)

// content is what is left in a namespace, and what went wrong with its deletion.
type content struct {
	left       bool                                // something is left
	remaining  map[schema.GroupVersionResource]int // number of objects; without pods, which go first
	finalizers map[string]int                      // number of objects that have it
	undiscover error                               // the resources of the server are not all known
	failures   []error                             // all errors
	deletions  []error                             // those of deletions
}

// object is what the controller reads of the objects in a namespace.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
}

// pod has the fields that say how long a pod may take to terminate.
type pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

var pods = schema.GroupResource{Resource: "pods"}

// deleteContent deletes everything in a namespace: first the pods, and then the rest if no pod is left.
func (c *Controller) deleteContent(ctx context.Context, ns *corev1.Namespace) *content {
	found := &content{remaining: map[schema.GroupVersionResource]int{}, finalizers: map[string]int{}}
	resources, err := c.discover(ctx)
	if err != nil {
		found.undiscover, found.failures = err, append(found.failures, err)
	}
	for _, r := range resources {
		if r.GroupResource() != pods {
			continue
		}
		if n := c.deleteAll(ctx, ns, r, found); n > 0 {
			found.left = true
			clear(found.finalizers) // as in Kubernetes, the conditions do not count pods
			return found
		}
	}
	for _, r := range resources {
		if r.GroupResource() == pods {
			continue
		}
		if n := c.deleteAll(ctx, ns, r, found); n > 0 {
			found.left = true
			found.remaining[r.GroupVersionResource()] = n
		}
	}
	return found
}

// discover returns the resources whose objects may be in a namespace. If some documents cannot be read, it returns the
// others with an error.
func (c *Controller) discover(ctx context.Context) ([]discovery.APIResource, error) {
	failed := c.mapper.Refresh(ctx)
	all, err := c.mapper.All(ctx)
	if failed == nil {
		failed = err
	}
	var out []discovery.APIResource
	for _, r := range all {
		if r.Preferred && r.Namespaced && r.Can("delete") {
			out = append(out, r)
		}
	}
	return out, failed
}

// deleteAll deletes the objects of one resource, and returns how many are left.
func (c *Controller) deleteAll(ctx context.Context, ns *corev1.Namespace, r discovery.APIResource, found *content) int {
	fail := func(err error) int {
		if !apierrors.IsNotFound(err) { // the resource itself is gone
			found.failures, found.deletions = append(found.failures, err), append(found.deletions, err)
		}
		return 0
	}
	client := apiclient.NewPartial[*object](c.client, r.Resource, ns.Name)
	grace, err := c.gracePeriod(ctx, ns, r)
	if err != nil {
		return fail(err)
	}
	if r.Can("deletecollection") {
		err = client.DeleteCollection(ctx, background(), metav1.ListOptions{})
	} else {
		err = deleteEach(ctx, client)
	}
	if err != nil || !r.Can("list") {
		return fail(err)
	}
	left, held := 0, false
	_, err = client.List(ctx, api.Options[*object]{}, func(o *object) error {
		left++
		for _, f := range o.Finalizers {
			held = true
			found.finalizers[f]++
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	if left > 0 && !held && grace == 0 {
		fail(fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", ns.Name, r.GroupVersionResource()))
	}
	return left
}

func deleteEach(ctx context.Context, client *apiclient.PartialClient[*object]) error {
	var keys []api.Key
	_, err := client.List(ctx, api.Options[*object]{}, func(o *object) error { keys = append(keys, api.KeyOf(o)); return nil })
	for _, key := range keys {
		if err == nil {
			err = client.Delete(ctx, key, background())
		}
		if apierrors.IsNotFound(err) {
			err = nil
		}
	}
	return err
}

// background lets the garbage collector care for the dependents, so that nothing in the namespace waits for others.
func background() metav1.DeleteOptions {
	policy := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

// gracePeriod returns the longest time that a pod of the namespace may still take to terminate, or 0.
func (c *Controller) gracePeriod(ctx context.Context, ns *corev1.Namespace, r discovery.APIResource) (time.Duration, error) {
	if r.GroupResource() != pods {
		return 0, nil
	}
	longest := time.Duration(0)
	_, err := apiclient.NewPartial[*pod](c.client, r.Resource, ns.Name).List(ctx, api.Options[*pod]{}, func(p *pod) error {
		if seconds := p.Spec.TerminationGracePeriodSeconds; seconds != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			longest = max(longest, time.Duration(*seconds)*time.Second)
		}
		return nil
	})
	if time.Since(ns.DeletionTimestamp.Time) >= longest {
		return 0, err
	}
	return longest, err
}

// text returns what an error of the server says, without the words of the client.
func text(err error) string {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status.Error()
	}
	return err.Error()
}
