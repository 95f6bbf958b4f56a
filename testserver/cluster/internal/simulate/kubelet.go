package simulate

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
)

// live takes the next step in the life of a pod on a node.
func (n *Nodes) live(ctx context.Context, key api.Key) (controller.Result, error) {
	p, found := n.podCache.Cache().Get(key)
	if !found {
		return controller.Result{}, nil
	}
	wait, err := n.step(ctx, p, time.Now())
	if apierrors.IsNotFound(err) {
		err = nil // it is gone
	}
	return controller.Result{RequeueAfter: wait}, err
}

func (n *Nodes) step(ctx context.Context, p *corev1.Pod, now time.Time) (time.Duration, error) {
	node, found := n.nodeCache.Cache().Get(api.Key{Name: p.Spec.NodeName})
	switch {
	case !found && p.DeletionTimestamp != nil:
		return 0, n.remove(ctx, p) // no kubelet will do it
	case !found || !ready(node):
		return 0, nil
	case p.DeletionTimestamp != nil:
		return n.terminate(ctx, p, now)
	case ended(p):
		return 0, nil
	}
	status, wait := n.options.life(p, hostIP(node), func() string {
		return n.addresses.lease(p.UID, p.Status.PodIP, func(i int) string { return podIP(node.Name, i) })
	}, now)
	if status.PodIP != "" && !p.Spec.HostNetwork {
		n.addresses.lease(p.UID, status.PodIP, nil) // also that of a pod from before the start of this simulation
	}
	return wait, n.write(ctx, p, status)
}

// terminate stops a deleted pod when its time has come, and then removes it.
func (n *Nodes) terminate(ctx context.Context, p *corev1.Pod, now time.Time) (time.Duration, error) {
	at, code := n.options.stopAt(p)
	if at.After(now) {
		return at.Sub(now), nil
	}
	if !ended(p) {
		return 0, n.write(ctx, p, n.options.stopped(p, code, now)) // the event of this write leads to the removal
	}
	if grace := p.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		return 0, nil // only finalizers keep it
	}
	return 0, n.remove(ctx, p)
}

func (n *Nodes) remove(ctx context.Context, p *corev1.Pod) error {
	now := int64(0)
	return n.pods.Delete(ctx, api.KeyOf(p), metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	})
}

// write writes a status that differs from that of the cache.
func (n *Nodes) write(ctx context.Context, p *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(p.Status, status) {
		return nil
	}
	p = p.DeepCopy()
	p.Status = status
	_, err := n.pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// sortedNames returns the names of resources in order, so that texts do not depend on the order of maps.
func sortedNames(l corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(l)) }
