package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// CheckStatus describes the consistency check of an informer; see Options.CheckEvery.
type CheckStatus struct {
	// Checks is the number of checks that have ended. At is the end of the last one, and Err its error or nil.
	Checks int
	At     time.Time
	Err    error
	// Missed is the number of changes that the checks found and that the cache had missed. It never decreases.
	Missed int
}

const (
	minimumCheckPeriod = time.Minute // shorter periods are raised to it
	checkPageSize      = 500
	maxCheckTime       = 10 * time.Minute
	// checkPatience is how long a check waits for the cache to reach the version of the list. A server sends a bookmark
	// every minute.
	checkPatience = 3 * time.Minute
)

var (
	errOldList    = errors.New("informer: the list of the consistency check is older than the cache")
	errSamePage   = errors.New("informer: the list of the consistency check repeats a page")
	errBusy       = errors.New("informer: the cache missed a change, and the reflector lists already")
	errNoMetadata = errors.New("informer: Options.CheckEvery has no effect, because the source has no method Metadata")
)

// difference is an object that the cache does not have as the server has it.
type difference struct {
	change          string // what the cache missed: "added", "changed" or "deleted"
	uid             types.UID
	version, cached string
}

// checker compares the cache of an informer with lists of metadata.
type checker[T api.Object] struct {
	informer *Informer[T]
	lw       api.ListerWatcher[*metav1.PartialObjectMetadata]
	last     map[api.Key]difference // those that the last list should have mended

	mu     sync.Mutex // guards the field below
	status CheckStatus
}

// newChecker returns the checker of an informer, or nil without Options.CheckEvery.
func newChecker[T api.Object](i *Informer[T]) *checker[T] {
	if i.o.CheckEvery <= 0 {
		return nil
	}
	return &checker[T]{informer: i}
}

// connect finds the source of the metadata. It reports whether there is one.
func (c *checker[T]) connect() bool {
	if source, ok := c.informer.lw.(interface {
		Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata]
	}); ok {
		c.lw = source.Metadata()
	}
	if c.lw == nil {
		c.informer.log.Warn("no consistency checks", zap.Error(errNoMetadata))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.status.Err = errNoMetadata
	}
	return c.lw != nil
}

func (c *checker[T]) read() (s CheckStatus) {
	if c == nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// loop checks the cache once in a period, from the first list until ctx ends.
func (c *checker[T]) loop(ctx context.Context) {
	if !c.connect() {
		return
	}
	select {
	case <-c.informer.synced:
	case <-ctx.Done():
		return
	}
	for c.pause(ctx) {
		found, err := c.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.informer.log.Info("the consistency check failed", zap.Error(err))
		}
		c.mu.Lock()
		c.status.Checks++
		c.status.At, c.status.Err = time.Now(), err
		c.status.Missed += found
		c.mu.Unlock()
	}
}

// pause waits for the period, shorter or longer by at most a quarter, so that informers do not all check at once. It
// reports whether ctx is still alive.
func (c *checker[T]) pause(ctx context.Context) bool {
	random := c.informer.o.Rand
	if random == nil {
		random = rand.Float64
	}
	period := float64(max(c.informer.o.CheckEvery, minimumCheckPeriod))
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
func (c *checker[T]) check(ctx context.Context) (found int, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxCheckTime)
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
		if !c.informer.feed.Relist() {
			return 0, errBusy
		}
		d := all[key]
		c.informer.log.Warn("the cache missed changes; listing again", zap.Int("count", found),
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
func (c *checker[T]) differences(ctx context.Context) (map[api.Key]difference, error) {
	unseen, undecodable := map[api.Key]struct{}{}, map[api.Key]bool{}
	for _, e := range c.informer.feed.Undecodable() {
		undecodable[e.Key] = true
	}
	before, all := c.informer.Snapshot(), map[api.Key]difference{}
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
		return nil, fmt.Errorf("informer: list metadata for the consistency check: %w", err)
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
func (c *checker[T]) addDeleted(
	ctx context.Context, all map[api.Key]difference, before *cache.Snapshot[T], unseen map[api.Key]struct{}, version string,
) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	if err := c.informer.WaitFor(ctx, version); err != nil {
		return fmt.Errorf("informer: wait until the cache has the version %s of the consistency check: %w", version, err)
	}
	after := c.informer.Snapshot()
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
func (c *checker[T]) list(ctx context.Context, each func(api.Key, types.UID, string)) (version string, err error) {
	o := api.Options[*metav1.PartialObjectMetadata]{DropManagedFields: true}
	o.LabelSelector, o.FieldSelector = c.informer.o.Selector.Labels, c.informer.o.Selector.Fields
	o.Limit = cmp.Or(c.informer.o.PageSize, checkPageSize)
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
