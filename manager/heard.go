package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/informer"
)

// HeardWithin returns a readiness check that fails if an informer's cache may be older than d: the server has sent no
// event, no bookmark and no list for that time. Pass the Status method of a factory, or a function that returns the
// status of some informers. kube-apiserver sends a bookmark about once a minute, so d should be at least two minutes. A
// server on which nothing at all is written sends no bookmarks, and the check fails; a cluster renews Leases all the
// time. A cache without its first list is not checked, because the manager's own check reports it. The manager does not
// add this check by itself: a program whose caches are old may still be more useful than none.
func HeardWithin(d time.Duration, statuses func() []informer.Status) Check {
	return func(context.Context) error {
		var old []error
		for _, s := range statuses() {
			if age := time.Since(s.HeardAt); s.Synced && age > d {
				old = append(old, fmt.Errorf("manager: %s: the server has sent nothing for %s", s.Name, age.Round(time.Second)))
			}
		}
		return errors.Join(old...)
	}
}
