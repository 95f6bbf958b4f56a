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

// lock is a lease as one replica knows it. One goroutine uses it.
type lock struct {
	o      Options
	leases *apiclient.TypedClient[*coordinationv1.Lease]

	seen    *coordinationv1.Lease // nil until there was one
	changed time.Time             // when it was seen to change last, by this process's clock
}

// holder is who holds the lease, as was seen last.
func (l *lock) holder() string {
	if l.seen == nil || l.seen.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.seen.Spec.HolderIdentity
}

// take takes the lease if it is free or this replica's, and tells whether it is this replica's now. An error is about a
// request that failed; that somebody else holds the lease is none.
func (l *lock) take(ctx context.Context) (bool, error) {
	if l.holder() == l.o.Identity { // a leader knows what it wrote, and nobody else should have written since
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
	if l.taken() {
		return false, nil
	}
	err := l.write(ctx, l.claim())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // somebody was faster, perhaps to take it
		if err := l.read(ctx); err != nil || l.taken() {
			return false, err
		}
	}
	return err == nil, err
}

// taken tells whether somebody else holds the lease, and was seen to do so within its duration.
func (l *lock) taken() bool { return l.runsOut() > 0 }

// runsOut is in how long the lease is free unless it is seen to change before; zero or less if it is free, or this
// replica's, already.
func (l *lock) runsOut() time.Duration {
	holder := l.holder()
	if holder == "" || holder == l.o.Identity {
		return 0
	}
	duration := l.o.LeaseDuration
	if seconds := l.seen.Spec.LeaseDurationSeconds; seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}
	return duration - time.Since(l.changed)
}

// claim is the lease as it is when this replica holds it.
func (l *lock) claim() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.o.Namespace, Name: l.o.Name}}
	if l.seen != nil {
		lease = l.seen.DeepCopy()
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
		if l.seen != nil && spec.LeaseTransitions != nil {
			transitions = *spec.LeaseTransitions + 1
		}
		spec.LeaseTransitions = &transitions
	}
	spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &l.o.Identity, &seconds, &now
	return lease
}

// release writes that nobody holds the lease, if this replica does. Its duration becomes a second, for those who look at
// nothing else.
func (l *lock) release(ctx context.Context) error {
	for try := 0; ; try++ {
		if l.holder() != l.o.Identity {
			return nil
		}
		lease := l.seen.DeepCopy()
		nobody, second, now := "", int32(1), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &second
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

// read asks the server for the lease. One that is not there is no error.
func (l *lock) read(ctx context.Context) error {
	lease, err := l.leases.Get(ctx, api.Key{Namespace: l.o.Namespace, Name: l.o.Name}, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.see(nil)
		return nil
	}
	if err != nil {
		return err
	}
	l.see(lease)
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
	l.see(lease)
	return nil
}

// see notes what the lease is now. Its holder's clock has no say: what counts is when this process saw it change.
func (l *lock) see(lease *coordinationv1.Lease) {
	if l.seen == nil || lease == nil || l.seen.UID != lease.UID || l.seen.ResourceVersion != lease.ResourceVersion {
		l.changed = time.Now()
	}
	l.seen = lease
}
