package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
)

var leases = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}

// These are the label and the annotations of the Lease of a member.
const (
	groupLabel       = "leatproject.github.io/shard-group"
	claimsAnnotation = "leatproject.github.io/shard-claims" // the ranges that other members must not work on
	seatAnnotation   = "leatproject.github.io/shard-seat"
	stateAnnotation  = "leatproject.github.io/shard-state" // stateMember or stateLeaving
	rulesAnnotation  = "leatproject.github.io/shard-rules" // see rules
)

const (
	stateMember  = "member"
	stateLeaving = "leaving" // it takes no ranges, and releases those that it has
)

// rules returns the text that all members of a group must have in common: how a hash is made, and how the hashes are
// divided.
func rules(f hashrange.Field) string { return "fnv1a-64 cut-1 " + string(f) }

// record is the Lease of a member as another member reads it.
type record struct {
	name     string // of the Lease
	uid      types.UID
	version  string
	identity string
	duration time.Duration // after which the Lease has expired; 0 if the Lease does not say
	seat     int           // -1 before the member has published one
	leaving  bool
	rules    string
	claims   hashrange.Set
	wrong    error // the claims cannot be read; the member counts as one that claims everything
	long     error // the Lease asks for more than maxLeaseDuration; duration is that
}

// read returns the record of a Lease.
func read(l *coordinationv1.Lease) record {
	r := record{
		name: l.Name, uid: l.UID, version: l.ResourceVersion, seat: -1,
		leaving: l.Annotations[stateAnnotation] == stateLeaving, rules: l.Annotations[rulesAnnotation],
	}
	if l.Spec.HolderIdentity != nil {
		r.identity = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseDurationSeconds != nil {
		r.duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	if r.duration > maxLeaseDuration {
		r.long = fmt.Errorf("shard: the Lease %s has the duration %v", l.Name, r.duration)
		r.duration = maxLeaseDuration
	}
	if seat, err := strconv.Atoi(l.Annotations[seatAnnotation]); err == nil {
		r.seat = seat
	}
	if r.claims, r.wrong = hashrange.Parse(l.Annotations[claimsAnnotation]); r.wrong != nil {
		r.wrong = fmt.Errorf("shard: the annotation %s of the Lease %s: %w", claimsAnnotation, l.Name, r.wrong)
		r.claims = hashrange.All()
	}
	return r
}

// publication is what a member writes into its Lease.
type publication struct {
	seat    int
	leaving bool
	claims  hashrange.Set
}

func (p publication) equal(other publication) bool {
	return p.seat == other.seat && p.leaving == other.leaving && p.claims.Equal(other.claims)
}

// lease returns the Lease with a publication in it. It keeps everything that others wrote into the old one, which may
// be nil.
func (o Options) lease(old *coordinationv1.Lease, name string, p publication) *coordinationv1.Lease {
	now := metav1.NowMicro()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}}
	if old != nil {
		l = old.DeepCopy()
	} else {
		l.Spec.AcquireTime = &now
	}
	state := stateMember
	if p.leaving {
		state = stateLeaving
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Labels[groupLabel] = o.Group
	maps.Copy(l.Annotations, map[string]string{
		claimsAnnotation: p.claims.String(), seatAnnotation: strconv.Itoa(p.seat),
		stateAnnotation: state, rulesAnnotation: rules(o.Field),
	})
	seconds := int32(o.LeaseDuration / time.Second)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &o.Identity, &seconds, &now
	return l
}

// observations remember when this process saw each Lease change. The clocks of other machines are never read.
type observations map[string]observation

type observation struct {
	uid     types.UID
	version string
	at      time.Time
}

// note records the Leases that a list has, at the time at which its answer arrived.
func (o observations) note(group []record, now time.Time) {
	seen := map[string]bool{}
	for _, r := range group {
		seen[r.name] = true
		if before := o[r.name]; before.uid != r.uid || before.version != r.version {
			o[r.name] = observation{r.uid, r.version, now}
		}
	}
	maps.DeleteFunc(o, func(name string, _ observation) bool { return !seen[name] })
}

// expired returns the Leases, except one, that have not changed for their duration.
func (o observations) expired(group []record, except string, byDefault time.Duration, now time.Time) []record {
	return slices.DeleteFunc(slices.Clone(group), func(r record) bool {
		return r.name == except || now.Sub(o[r.name].at) < cmp.Or(r.duration, byDefault)
	})
}
