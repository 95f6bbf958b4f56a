package leaderelection

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/apiclient"
)

// The defaults of Options are those of every Kubernetes component.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// maxLeaseDuration bounds LeaseDuration, and the duration that the holder of a lease can ask for. A wrong lease must
// not keep all replicas from leading for years. An Elector still stops before its own lease has expired, because its
// LeaseDuration has the same bound.
const maxLeaseDuration = time.Hour

// jitter spreads the attempts of candidates: each pause is RetryPeriod plus a random part of up to jitter ×
// RetryPeriod.
const jitter = 1.2

// Options name the lease and set the times. Name is required. It corresponds to LeaderElectionConfig of client-go, with
// the lock in it.
type Options struct {
	// Namespace is the namespace of the lease. Empty means the namespace of the pod in which the program runs. It is an
	// error if the program does not run in a pod.
	Namespace string
	// Name is the name of the lease. The lease is created if it does not exist.
	Name string
	// Labels are written to the lease while this replica leads. Other labels of the lease stay.
	Labels map[string]string
	// Identity must be different for each replica. Empty means the host's name and a random suffix.
	Identity string

	// LeaseDuration is how long other replicas wait for a renewal before they take the lease, in whole seconds and at
	// most an hour. 0 means 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it stops leading. It must be shorter than LeaseDuration.
	// The difference allows for clocks of different speed and for the time that the work takes to end. 0 means 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two attempts, and between two renewals. 0 means 2 s.
	RetryPeriod time.Duration

	// KeepLease lets the lease expire at the end instead of releasing it.
	KeepLease bool

	// OnLeader is called with the identity of the leader when it becomes known and when it changes, and with "" when
	// the lease is free.
	OnLeader func(identity string)
	// OnLeading is called with true when this replica begins to lead, and with false when it has ended.
	OnLeading func(leading bool)
	// OnSlowPath is called for each renewal that must first read the lease, because it was changed by another client.
	// It is for metrics.
	OnSlowPath func()

	// Logger receives entries about elections and failures. A nil Logger means no log.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	o.LeaseDuration = cmp.Or(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	o.Namespace = cmp.Or(o.Namespace, apiclient.InClusterNamespace())
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("leaderelection: Options.Identity is empty, and the name of the host is not known: %w", err)
		}
		o.Identity = host + "_" + strings.ToLower(rand.Text())
	}
	return o, o.validate()
}

// lease returns the name of the lease in logs and errors.
func (o Options) lease() string { return o.Namespace + "/" + o.Name }

// validate returns all errors of the options.
func (o Options) validate() error {
	var wrong []error
	check := func(ok bool, format string, a ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("leaderelection: Options."+format, a...))
		}
	}
	check(o.Namespace != "", "Namespace is empty, and the program does not run in a pod")
	check(o.Name != "", "Name is empty")
	check(o.LeaseDuration >= time.Second && o.LeaseDuration%time.Second == 0 && o.LeaseDuration <= maxLeaseDuration,
		"LeaseDuration is %v: it must be a whole number of seconds, positive, and at most %v", o.LeaseDuration, maxLeaseDuration)
	check(o.RenewDeadline < o.LeaseDuration,
		"RenewDeadline is %v: it must be shorter than LeaseDuration, %v", o.RenewDeadline, o.LeaseDuration)
	check(o.RetryPeriod > 0, "RetryPeriod is %v: it must be positive", o.RetryPeriod)
	check(o.RenewDeadline > time.Duration(jitter*float64(o.RetryPeriod)),
		"RenewDeadline is %v: it must be longer than %v times RetryPeriod, %v", o.RenewDeadline, jitter, o.RetryPeriod)
	return errors.Join(wrong...)
}
