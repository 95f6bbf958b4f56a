package driftcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

const (
	minimumPeriod = time.Minute // shorter periods are raised to it
	pageSize      = 500
	maxTime       = 10 * time.Minute
	// patience is how long a check waits for the cache to reach the version of the list. A server sends a bookmark
	// every minute.
	patience = 3 * time.Minute
)

var (
	errOldList    = errors.New("driftcheck: the list is older than the cache")
	errSamePage   = errors.New("driftcheck: the list repeats a page")
	errBusy       = errors.New("driftcheck: the cache missed a change, and the reflector lists already")
	errNoMetadata = errors.New("driftcheck: informer.Options.Check has no effect, because the source is no api.MetadataSource")
)

// difference is an object that the cache does not have as the server has it.
type difference struct {
	change          string // what the cache missed: "added", "changed" or "deleted"
	uid             types.UID
	version, cached string
}

// Every returns a check for informer.Options.Check. It compares the UIDs and versions of the server with the cache once
// in a period, to find a change that the server did not send. Each pause is shorter or longer by at most a quarter, and
// a period below a minute is raised to a minute.
//
// A check logs what it finds, counts it in the Status of the informer, and makes the reflector list again. The list
// leads to a call of OnError with reflector.ErrMissed. The same difference does not lead to a second list.
//
// A check costs one consistent list of PartialObjectMetadata, with the informer's selector: a request for each 500
// objects, or PageSize, about 1 to 3 KB an object on the wire, and less than 200 bytes an object in memory until the
// check ends. It ends after at most ten minutes. Versions must be numbers. The source must be an
// api.MetadataSource, as the clients of apiclient are; otherwise a warning is logged, and the Status has an error.
func Every(period time.Duration) informer.Check { return every(period) }

type every time.Duration

// checker compares the cache of an informer with lists of metadata.
type checker struct {
	informer.Checked
	period time.Duration
	lw     api.ListerWatcher[*metav1.PartialObjectMetadata]
	last   map[api.Key]difference // those that the last list should have mended
}

// Run implements informer.Check. It checks from the first list until ctx ends.
func (e every) Run(ctx context.Context, i informer.Checked) {
	c := &checker{Checked: i, period: time.Duration(e), lw: api.MetadataOf(i.Source)}
	var status informer.CheckStatus
	if c.lw == nil {
		c.Logger.Warn("no consistency checks", zap.Error(errNoMetadata))
		status.Err = errNoMetadata
		c.Report(status)
		return
	}
	select {
	case <-c.Synced:
	case <-ctx.Done():
		return
	}
	for c.pause(ctx) {
		found, err := c.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.Logger.Info("the consistency check failed", zap.Error(err))
		}
		status.Checks++
		status.At, status.Err = time.Now(), err
		status.Missed += found
		c.Report(status)
	}
}

// pause waits for the period, shorter or longer by at most a quarter, so that informers do not all check at once. It
// reports whether ctx is still alive.
func (c *checker) pause(ctx context.Context) bool {
	random := c.Rand
	if random == nil {
		random = rand.Float64
	}
	period := float64(max(c.period, minimumPeriod))
	timer := time.NewTimer(time.Duration(period * (0.75 + random()/2)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// check compares the cache with the server once. It returns the number of missed changes that it has not found before.
// For them it makes the reflector list again. A list does not mend a difference that is not due to a lost event, so the
// same difference does not lead to a second list.
func (c *checker) check(ctx context.Context) (found int, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	all, err := c.differences(ctx)
	if err != nil {
		return 0, err
	}
	var key api.Key
	for k, d := range all {
		if c.last[k] != d {
			found++
			key = k
		}
	}
	if found > 0 {
		if !c.Relist() {
			return 0, errBusy
		}
		d := all[key]
		c.Logger.Warn("the cache missed changes; listing again", zap.Int("count", found),
			zap.String("object", api.FormatKey(key)), zap.String("change", d.change),
			zap.String("rv", d.version), zap.String("cached", d.cached))
	}
	c.last = all
	return found, nil
}

// differences returns the objects that differ between the cache and the server. The rule is exact, because the cache
// has an exact version: an object whose version in the list is not newer than the cache was already so when the list
// began. An object that the list does not have was deleted, and the cache must not have it once it has reached the
// version of the list. Newer changes are left to the next check. Undecodable objects are skipped, because the cache has
// an older state of them.
func (c *checker) differences(ctx context.Context) (map[api.Key]difference, error) {
	// The state is read first: an object of which it has an older state is then among the undecodable ones.
	before, all := c.State(), map[api.Key]difference{}
	unseen, undecodable := map[api.Key]struct{}{}, map[api.Key]bool{}
	for _, e := range c.Undecodable() {
		undecodable[e.Key] = true
	}
	for key := range before.Keys() {
		unseen[key] = struct{}{}
	}
	version, err := c.list(ctx, func(key api.Key, uid types.UID, version string) {
		delete(unseen, key)
		if order, ok := api.CompareVersions(version, before.ResourceVersion()); !ok || order > 0 || undecodable[key] {
			return
		}
		cachedUID, cached, exists := before.Identity(key)
		switch {
		case !exists:
			all[key] = difference{"added", uid, version, ""}
		case cached != version || cachedUID != "" && cachedUID != uid:
			all[key] = difference{"changed", uid, version, cached}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("driftcheck: list metadata: %w", err)
	}
	if order, ok := api.CompareVersions(version, before.ResourceVersion()); !ok || order < 0 {
		return nil, errOldList
	}
	if len(unseen) == 0 {
		return all, nil
	}
	return all, c.addDeleted(ctx, all, before, unseen, version)
}

// addDeleted adds the objects that a list of this version does not have and that the cache still has.
func (c *checker) addDeleted(
	ctx context.Context, all map[api.Key]difference, before informer.Identities, unseen map[api.Key]struct{}, version string,
) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.WaitFor(ctx, version); err != nil {
		return fmt.Errorf("driftcheck: wait until the cache has version %s: %w", version, err)
	}
	after := c.State()
	for key := range unseen {
		_, was, _ := before.Identity(key)
		if uid, is, exists := after.Identity(key); exists && is == was {
			all[key] = difference{"deleted", uid, "", is}
		}
	}
	return nil
}

// list calls each for the identity of every object of the collection. It returns the version of the first page, which
// is the newest one at its time.
func (c *checker) list(ctx context.Context, each func(api.Key, types.UID, string)) (version string, err error) {
	o := api.Options[*metav1.PartialObjectMetadata]{DropManagedFields: true}
	o.LabelSelector, o.FieldSelector = c.Selector.Labels, c.Selector.Fields
	o.Limit = cmp.Or(c.PageSize, pageSize)
	o.OnUndecodable = func(e *api.UndecodableError) error {
		each(e.Key, e.UID, "") // it is there, but its version is not compared
		return nil
	}
	for {
		items := 0
		page, err := c.lw.List(ctx, o, func(m *metav1.PartialObjectMetadata) error {
			items++
			each(api.KeyOf(m), m.UID, m.ResourceVersion)
			return nil
		})
		if err != nil {
			return "", err
		}
		version = cmp.Or(version, page.ResourceVersion)
		switch {
		case page.Continue == "":
			return version, nil
		case page.Continue == o.Continue:
			return "", errSamePage
		}
		o.Continue = page.Continue
	}
}
