package admission

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// run corrects the usage of quotas whenever objects have changed, as the quota controller of kube-controller-manager
// does, until ctx ends.
func (q *quotas) run(ctx context.Context) error {
	for {
		changed := q.factory.NextVersion()
		again := q.recount()
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer:
		}
	}
}

// recount corrects the status of every quota, except in namespaces with reservations. It returns the time after which
// the next reservation ends, or zero.
func (q *quotas) recount() time.Duration {
	if q.idle() {
		return 0
	}
	all, err := q.factory.Core().V1().ResourceQuotas().Lister().List(labels.Everything())
	if err != nil || len(all) == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.dropReservations()
	for _, one := range all {
		if !q.holds(one.Namespace) || !equality.Semantic.DeepEqual(one.Spec.Hard, one.Status.Hard) {
			q.correct(one)
		}
	}
	return next
}

// dropReservations removes the reservations of objects that are stored, and those that are too old. It returns when the
// next one ends.
func (q *quotas) dropReservations() time.Duration {
	now := time.Now()
	var next time.Duration
	q.reserved = slices.DeleteFunc(q.reserved, func(r reservation) bool {
		if !now.Before(r.until) || r.uid != "" && q.factory.UID(r.resource, r.key) == r.uid {
			return true
		}
		if left := r.until.Sub(now); next == 0 || left < next {
			next = left
		}
		return false
	})
	return next
}

func (q *quotas) holds(namespace string) bool {
	return slices.ContainsFunc(q.reserved, func(r reservation) bool { return r.key.Namespace == namespace })
}

// correct writes the limits and the real usage of a quota into its status if they are not there.
func (q *quotas) correct(listed *corev1.ResourceQuota) {
	now, err := q.factory.Core().V1().ResourceQuotas().Lister().ResourceQuotas(listed.Namespace).Get(listed.Name)
	if err != nil {
		return // deleted meanwhile
	}
	for name := range now.Spec.Hard {
		if gr, ok := counted(name); ok {
			q.evaluator(gr)
		}
	}
	used, err := quota.CalculateUsage(now.Namespace, now.Spec.Scopes, now.Spec.Hard, q.registry, now.Spec.ScopeSelector)
	if err != nil && len(used) == 0 {
		return // every resource of the quota is unknown to the server
	}
	status := corev1.ResourceQuotaStatus{Hard: now.Spec.Hard, Used: corev1.ResourceList{}}
	for name := range now.Spec.Hard {
		status.Used[name] = used[name] // a limit that is not measured is used by zero
	}
	if equality.Semantic.DeepEqual(status, now.Status) {
		return
	}
	changed := now.DeepCopy()
	changed.Status = status
	_ = q.write(changed) // the quota changed meanwhile, and the next round corrects it
}

// counted returns the resource of a limit like "count/deployments.apps".
func counted(name corev1.ResourceName) (schema.GroupResource, bool) {
	resource, ok := strings.CutPrefix(string(name), "count/")
	return schema.ParseGroupResource(resource), ok
}
