package leaderelection

import (
	"context"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// lock is the state of a lease as one replica knows it. One goroutine uses it.
type lock struct {
	o      Options
	leases *apiclient.TypedClient[*coordinationv1.Lease]

	observed  *coordinationv1.Lease // nil if the lease does not exist, or before the first request
	changedAt time.Time             // time of the last observed change, by this process's clock
}

// holder returns the observed holder of the lease, or "".
func (l *lock) holder() string {
	if l.observed == nil || l.observed.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.observed.Spec.HolderIdentity
}

// take takes the lease if it is free or if this replica holds it, and reports whether this replica holds it now. An
// error means that a request failed. A lease that another replica holds is not an error.
func (l *lock) take(ctx context.Context) (bool, error) {
	if l.holder() == l.o.Identity { // nobody should have changed the leader's lease, so it writes without a read
		err := l.write(ctx, l.claim())
		if err == nil {
			return true, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return false, err
		}
		if l.o.OnSlowPath != nil {
			l.o.OnSlowPath()
		}
	}
	if err := l.read(ctx); err != nil {
		return false, err
	}
	if l.heldByAnother() {
		return false, nil
	}
	err := l.write(ctx, l.claim())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // another client has written meanwhile, perhaps a holder
		if err := l.read(ctx); err != nil || l.heldByAnother() {
			return false, err
		}
	}
	return err == nil, err
}

// heldByAnother reports whether another replica holds the lease and it has not expired.
func (l *lock) heldByAnother() bool { return l.expiresIn() > 0 }

// expiresIn returns how long the lease is valid if it does not change before. It returns zero or less if the lease is
// free, expired or held by this replica.
func (l *lock) expiresIn() time.Duration {
	holder := l.holder()
	if holder == "" || holder == l.o.Identity {
		return 0
	}
	return min(l.duration(), maxLeaseDuration) - time.Since(l.changedAt)
}

// duration returns the duration that the observed lease asks for.
func (l *lock) duration() time.Duration {
	if l.observed == nil || l.observed.Spec.LeaseDurationSeconds == nil {
		return l.o.LeaseDuration
	}
	return time.Duration(*l.observed.Spec.LeaseDurationSeconds) * time.Second
}

// claim returns the lease as this replica writes it when it holds it.
func (l *lock) claim() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.o.Namespace, Name: l.o.Name}}
	if l.observed != nil {
		lease = l.observed.DeepCopy()
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	maps.Copy(lease.Labels, l.o.Labels)
	now := metav1.NowMicro()
	seconds := int32(l.o.LeaseDuration / time.Second)
	spec := &lease.Spec
	if l.holder() != l.o.Identity {
		spec.AcquireTime = &now
		transitions := int32(0)
		if l.observed != nil && spec.LeaseTransitions != nil {
			transitions = *spec.LeaseTransitions + 1
		}
		spec.LeaseTransitions = &transitions
	}
	spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &l.o.Identity, &seconds, &now
	return lease
}

// release writes a lease without a holder if this replica holds it. The duration becomes one second, for clients that
// look only at the duration.
func (l *lock) release(ctx context.Context) error {
	for try := 0; ; try++ {
		if l.holder() != l.o.Identity {
			return nil
		}
		lease := l.observed.DeepCopy()
		noHolder, second, now := "", int32(1), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &noHolder, &second
		lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
		err := l.write(ctx, lease)
		if !apierrors.IsConflict(err) || try == 3 {
			return err
		}
		if err := l.read(ctx); err != nil {
			return err
		}
	}
}

// read gets the lease from the server. A missing lease is not an error.
func (l *lock) read(ctx context.Context) error {
	lease, err := l.leases.Get(ctx, api.Key{Namespace: l.o.Namespace, Name: l.o.Name}, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.observe(nil)
		return nil
	}
	if err != nil {
		return err
	}
	l.observe(lease)
	return nil
}

// write creates or updates the lease.
func (l *lock) write(ctx context.Context, lease *coordinationv1.Lease) error {
	var err error
	if lease.ResourceVersion == "" {
		lease, err = l.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		lease, err = l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	l.observe(lease)
	return nil
}

// observe records the current lease. The clock of its holder is ignored: only the time at which this process observed a
// change counts.
func (l *lock) observe(lease *coordinationv1.Lease) {
	if l.observed == nil || lease == nil || l.observed.UID != lease.UID || l.observed.ResourceVersion != lease.ResourceVersion {
		l.changedAt = time.Now()
	}
	l.observed = lease
}
