package testserver

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// Play makes a change as another server made it. It stores obj as it is, with its UID and its resource version, and
// nothing checks or completes it; if kind is watch.Deleted, it removes the object. version is that of the object, or
// that of the deletion. If the server has reached the version already, the change gets the next one. A definition of a
// custom resource that is played has no effect on what is served: see Define. Play fails if the resource is not served
// in its version, or if obj is not an object.
func (s *Server) Play(r api.Resource, kind watch.EventType, obj any, version string) error {
	tree, err := object.From(obj)
	if err == nil {
		err = writer.CheckShape(tree)
	}
	number, parseErr := strconv.ParseUint(version, 10, 63)
	if err == nil && parseErr != nil {
		err = fmt.Errorf("the resource version %q is not a number", version)
	}
	if err != nil {
		return fmt.Errorf("testserver: play: %w", err)
	}
	meta := object.Metadata(tree)
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	return s.directly(r, func(c *store.Collection) error {
		if !c.Definition().Serves(r.Version) {
			return fmt.Errorf("testserver: play: %s is not served in version %s", r, r.Version)
		}
		before := c.Get(key)
		switch {
		case kind != watch.Deleted:
			s.store.Reach(number - 1)
			_, err = s.store.Put(c, before, tree)
		case before != nil:
			s.store.Reach(number - 1)
			s.store.Drop(c, before)
		}
		return err
	})
}
