package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// schedule binds a pod to a node.
func (n *Nodes) schedule(ctx context.Context, key api.Key) (controller.Result, error) {
	p, found := n.podCache.Cache().Get(key)
	if !found || !schedulable(p) {
		n.settle(key)
		return controller.Result{}, nil
	}
	node, why := n.choose(p)
	if node == "" {
		n.mu.Lock()
		n.unschedulable[key] = struct{}{}
		n.mu.Unlock()
		return controller.Result{}, n.explain(ctx, p, why)
	}
	n.settle(key)
	n.usage.place(p, node) // before the cache shows the binding, so that the next pod finds the room taken
	endpoint := apiclient.Subresource[*corev1.Binding, *metav1.Status](n.client, podResource, key, "binding")
	_, err := endpoint.Create(ctx, &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		n.usage.remove(p.UID)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil // the pod is gone or was bound by another client; the event follows
	}
	return controller.Result{}, err
}

// schedulable reports whether a pod waits for this scheduler.
func schedulable(p *corev1.Pod) bool {
	ours := p.Spec.SchedulerName == "" || p.Spec.SchedulerName == corev1.DefaultSchedulerName
	return ours && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !ended(p) && len(p.Spec.SchedulingGates) == 0
}

// settle forgets that no node fits a pod.
func (n *Nodes) settle(key api.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.unschedulable, key)
}

// waiting returns the pods without a node that fits.
func (n *Nodes) waiting() []api.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.unschedulable))
}

// retry schedules the pods again that did not fit.
func (n *Nodes) retry() {
	for _, key := range n.waiting() {
		n.scheduler.Add(key, workqueue.Item{})
	}
}

// choose returns the node with the fewest pods of those that fit a pod. Without one, why counts the reasons.
func (n *Nodes) choose(p *corev1.Pod) (node, why string) {
	requests := requestsOf(p)
	reasons := map[string]int{}
	best, all := int64(0), n.nodeCache.Cache().List()
	slices.SortFunc(all, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, candidate := range all {
		l := n.usage.on(candidate.Name)
		objections := objections(p, candidate)
		if len(objections) == 0 {
			objections = l.lacking(candidate, requests)
		}
		for _, o := range objections {
			reasons[o]++
		}
		if len(objections) == 0 && (node == "" || l.pods < best) {
			node, best = candidate.Name, l.pods
		}
	}
	if node != "" {
		return node, ""
	}
	if len(all) == 0 {
		return "", "no nodes available to schedule pods"
	}
	lines := make([]string, 0, len(reasons))
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		lines = append(lines, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	return "", fmt.Sprintf("0/%d nodes are available: %s.", len(all), strings.Join(lines, ", "))
}

// objections returns why a node, regardless of its load, does not fit a pod. The words are those of kube-scheduler.
func objections(p *corev1.Pod, node *corev1.Node) []string {
	if node.Spec.Unschedulable && !tolerates(p, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return []string{"node(s) were unschedulable"}
	}
	if !ready(node) {
		return []string{"node(s) were not ready"}
	}
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(p, t) {
			return []string{"node(s) had untolerated taint(s)"}
		}
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(node); err != nil || !fits {
		return []string{"node(s) didn't match Pod's node affinity/selector"}
	}
	return nil
}

// tolerates reports whether a pod tolerates a taint.
func tolerates(p *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return true
		case t.Operator == "" || t.Operator == corev1.TolerationOpEqual:
			return t.Key != "" && t.Value == taint.Value
		}
		return false
	})
}

// explain writes why a pod cannot be scheduled.
func (n *Nodes) explain(ctx context.Context, p *corev1.Pod, why string) error {
	p = p.DeepCopy()
	changed := setCondition(&p.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
	}, time.Now())
	if !changed {
		return nil
	}
	_, err := n.pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
