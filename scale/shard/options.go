package shard

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
)

// The default times are those of every Kubernetes component that elects a leader.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

// maxLeaseDuration bounds LeaseDuration, and the duration that another member's Lease can ask for. A wrong Lease must
// not keep its ranges from all members for years. A member still stops before its own Lease has expired, because its
// LeaseDuration has the same bound.
const maxLeaseDuration = time.Hour

// Options name the group and set the times. Group is required.
type Options struct {
	// Namespace is the namespace of the Leases. Empty means the namespace of the pod in which the program runs. It is
	// an error if the program does not run in a pod.
	Namespace string
	// Group is the name of the replicas that share the work: a value of a label, and the first part of the names of
	// their Leases.
	Group string
	// Identity names this replica in its Lease, in logs and in Status. Empty means the host's name and a random suffix.
	Identity string
	// Field decides in which range an object is. All members of a group must have the same. Empty means UID, which
	// divides objects evenly. By namespace, all objects of a namespace have the same owner; choose it for a controller
	// that owns objects of other kinds.
	Field hashrange.Field

	// LeaseDuration is how long other members wait for a renewal before they take the ranges, in whole seconds and at
	// most an hour. 0 means 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a member tries to renew before it stops working. It must be shorter than LeaseDuration;
	// see promise 2. 0 means 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the longest time between two renewals, and so between a change of the group and the moment at
	// which another member notices it. Each renewal sends an update and a list of the group. 0 means 2 s.
	RetryPeriod time.Duration

	// Logger receives entries about the group, hand-overs and failures. A nil Logger means no log.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	o.LeaseDuration = cmp.Or(o.LeaseDuration, defaultLeaseDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, defaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, defaultRetryPeriod)
	o.Field = cmp.Or(o.Field, hashrange.UID)
	o.Namespace = cmp.Or(o.Namespace, apiclient.InClusterNamespace())
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("shard: Options.Identity is empty, and the name of the host is not known: %w", err)
		}
		o.Identity = host + "_" + strings.ToLower(rand.Text())
	}
	return o, o.validate()
}

// maxGroup leaves room for the random part of the name of a Lease, and is the limit of the value of a label.
const maxGroup = 63

// validate returns all errors of the options.
func (o Options) validate() error {
	var wrong []error
	check := func(ok bool, format string, a ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("shard: Options."+format, a...))
		}
	}
	check(o.Namespace != "", "Namespace is empty, and the program does not run in a pod")
	check(o.Group != "", "Group is empty")
	parts := strings.Split(o.Group, ".")
	check(o.Group == "" || len(o.Group) <= maxGroup && !slices.ContainsFunc(parts, notLabel),
		"Group is %.80q: it must be a DNS name of at most %d characters in lower case", o.Group, maxGroup)
	check(o.Field == hashrange.UID || o.Field == hashrange.Namespace, "Field is %.80q: it must be %q or %q",
		o.Field, hashrange.UID, hashrange.Namespace)
	check(o.LeaseDuration >= time.Second && o.LeaseDuration%time.Second == 0 && o.LeaseDuration <= maxLeaseDuration,
		"LeaseDuration is %v: it must be a whole number of seconds, positive, and at most %v", o.LeaseDuration, maxLeaseDuration)
	check(o.RenewDeadline < o.LeaseDuration,
		"RenewDeadline is %v: it must be shorter than LeaseDuration, %v", o.RenewDeadline, o.LeaseDuration)
	check(o.RetryPeriod > 0, "RetryPeriod is %v: it must be positive", o.RetryPeriod)
	check(o.RenewDeadline >= 3*o.RetryPeriod,
		"RenewDeadline is %v: it must be at least three times RetryPeriod, %v", o.RenewDeadline, o.RetryPeriod)
	return errors.Join(wrong...)
}

// notLabel reports whether a text is not a part of a DNS name in lower case.
func notLabel(part string) bool {
	return part == "" || part != strings.Trim(strings.Map(labelRune, part), "-")
}

// labelRune returns a character that a part of a DNS name may have, and -1 for others.
func labelRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
		return r
	}
	return -1
}

// attempt is the longest time of one request.
func (o Options) attempt() time.Duration { return o.RenewDeadline / 3 }
