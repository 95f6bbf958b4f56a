package leatcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/scale/referenced"
)

// References say which objects of a type are cached; see Options.Referenced.
type References struct {
	// By has a function for each type whose objects refer to those of this type. It returns the keys, and must depend
	// on its argument alone. The key of By is an object of the type. The informers of these types are started too.
	By map[client.Object]func(client.Object) []client.ObjectKey
	// ReadLive makes Get read an object that is not referenced from the server. The answer is not cached, and it is the
	// server's: selectors, transforms and DropManagedFields of the cache do not apply to it.
	ReadLive bool
}

// setReferences checks and stores Options.Referenced.
func (c *Cache) setReferences(given map[client.Object]References) error {
	c.references = map[schema.GroupVersionKind]References{}
	for object, r := range given {
		gvk, err := apiutil.GVKForObject(object, c.o.Scheme)
		switch _, twice := c.references[gvk]; {
		case err != nil:
			return fmt.Errorf("leatcache: Referenced[%T]: %w", object, err)
		case twice:
			return fmt.Errorf("leatcache: Referenced has two entries for %s", gvk.Kind)
		case len(r.By) == 0:
			return fmt.Errorf("leatcache: Referenced[%T].By is empty, so no object would be cached", object)
		}
		c.references[gvk] = r
	}
	for object, r := range given {
		for by := range r.By {
			key, err := c.keyOf(by)
			if err != nil {
				return fmt.Errorf("leatcache: Referenced[%T].By[%T]: %w", object, by, err)
			}
			if _, limited := c.references[key.gvk]; limited {
				return fmt.Errorf("leatcache: Referenced[%T].By[%T]: %s are in Referenced too; follow a type whose objects are all cached", object, by, key.gvk.Kind)
			}
		}
	}
	return nil
}

// checkRemovable returns an error for a type of Options.Referenced and for one whose objects refer to it: the other
// informer follows this one for as long as the cache runs.
func (c *Cache) checkRemovable(key collectionKey) error {
	for gvk, r := range c.references {
		removable := gvk != key.gvk
		for by := range r.By {
			other, err := c.keyOf(by)
			removable = removable && err == nil && other.gvk != key.gvk
		}
		if !removable {
			return fmt.Errorf("leatcache: the informer of %s cannot be removed, because Options.Referenced uses it", key.gvk.Kind)
		}
	}
	return nil
}

// onlyReferenced reports whether a collection has only referenced objects.
func (of *collection) onlyReferenced() bool {
	_, limited := of.cache.references[of.key.gvk]
	return limited && of.key.object != reflect.TypeFor[*metav1.PartialObjectMetadata]()
}

// partialOf returns the client of a source of newCollection.
func partialOf(source api.ListerWatcher[client.Object]) *apiclient.PartialClient[client.Object] {
	switch c := source.(type) {
	case *apiclient.PartialOf[client.Object]:
		return &c.PartialClient
	case *apiclient.MaskedClient[client.Object]:
		return &c.PartialClient
	default:
		panic(fmt.Sprintf("leatcache: a %T has no client", source))
	}
}

// referrer is a collection whose objects refer to those of another one.
type referrer struct {
	collection *collection
	references func(client.Object) []api.Key
}

// findReferrers finds the collections whose objects refer to those of a collection, and makes those that are missing.
func (c *Cache) findReferrers(of *collection) error {
	if !of.onlyReferenced() {
		return nil
	}
	for object, references := range c.references[of.key.gvk].By {
		key, err := c.keyOf(object)
		if err != nil {
			return err
		}
		by, _, err := c.collection(key)
		if err != nil {
			return err
		}
		of.referrers = append(of.referrers, referrer{by, references})
	}
	return nil
}

// follow makes each scope follow its referrers. Nothing else follows, so that a collection that was made twice leaves
// no handler behind.
func (of *collection) follow() error {
	for _, s := range of.scopes {
		for _, r := range of.referrers {
			for _, in := range r.collection.scopes {
				if _, err := referenced.Follow(s.referenced, in.informer, r.references); err != nil {
					return fmt.Errorf("leatcache: %w", err)
				}
			}
		}
	}
	return nil
}

// fetched returns an object that the snapshot of a scope lacks. It waits for the request for an object that was just
// referenced. live reports that the object was read from the server for the caller.
func (of *collection) fetched(ctx context.Context, s *scope, key client.ObjectKey) (object client.Object, live bool, err error) {
	object, err = s.referenced.Get(ctx, key)
	var other *referenced.NotReferencedError
	if errors.As(err, &other) && of.cache.references[of.key.gvk].ReadLive {
		object, err = s.client.Get(ctx, key, metav1.GetOptions{})
		return object, true, err
	}
	return object, false, err
}
