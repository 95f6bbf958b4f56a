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

// The defaults of Options, those of every Kubernetes component.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// jitter spreads the tries of those who wait: each waits RetryPeriod and up to jitter times as much more.
const jitter = 1.2

// Options say which lease it is, and how long everything takes. Name is required.
// It corresponds to LeaderElectionConfig of client-go, with the lock in it.
type Options struct {
	// Namespace is the lease's. Empty means that of the pod that the program runs in, and is an error where it runs in
	// none.
	Namespace string
	// Name is the lease's, which is made when it is not there.
	Name string
	// Labels are what this replica writes to the lease's labels while it leads. Others that are there stay.
	Labels map[string]string
	// Identity tells this replica from all others. Empty means the host's name and something random.
	Identity string

	// LeaseDuration is how long those who do not lead wait for a sign of life of who does, in whole seconds. Zero means
	// 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up. It must be shorter than LeaseDuration: what
	// lies between is what clocks may differ by, and what the work may take to end. Zero means 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two tries, and between two renewals. Zero means 2 s.
	RetryPeriod time.Duration

	// KeepLease leaves the lease to run out at the end instead of releasing it.
	KeepLease bool

	// OnLeader is told who leads, when that becomes known and when it changes, and "" when nobody does.
	OnLeader func(identity string)
	// OnLeading is told that this replica begins to lead, and that it has ended.
	OnLeading func(leading bool)
	// OnSlowPath is told of each renewal that the cached lease did not suffice for. It is for metrics.
	OnSlowPath func()

	// Logger is told of elections and failures; nil is silent.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	o.LeaseDuration = cmp.Or(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	o.Namespace = cmp.Or(o.Namespace, apiclient.InClusterNamespace())
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("leaderelection: no Identity is given, and the host has no name: %w", err)
		}
		o.Identity = host + "_" + strings.ToLower(rand.Text())
	}
	return o, o.validate()
}

// lease is what the lease is called in logs and errors.
func (o Options) lease() string { return o.Namespace + "/" + o.Name }

// validate finds everything that is wrong.
func (o Options) validate() error {
	var wrong []error
	check := func(ok bool, format string, a ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("leaderelection: Options."+format, a...))
		}
	}
	check(o.Namespace != "", "Namespace is empty, and the program runs in no pod that would have one")
	check(o.Name != "", "Name is empty: the lease needs one")
	check(o.LeaseDuration >= time.Second && o.LeaseDuration%time.Second == 0,
		"LeaseDuration is %v: a lease is as long as a whole number of seconds", o.LeaseDuration)
	check(o.RenewDeadline < o.LeaseDuration,
		"RenewDeadline is %v: it must be shorter than LeaseDuration, %v", o.RenewDeadline, o.LeaseDuration)
	check(o.RetryPeriod > 0, "RetryPeriod is %v: it must be positive", o.RetryPeriod)
	check(o.RenewDeadline > time.Duration(jitter*float64(o.RetryPeriod)),
		"RenewDeadline is %v: it must be longer than %v times RetryPeriod, %v", o.RenewDeadline, jitter, o.RetryPeriod)
	return errors.Join(wrong...)
}
