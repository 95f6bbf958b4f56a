package writer

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// checkUID compares the UID of an update, if it has one, with that of the stored object.
func checkUID(d *registry.Definition, key api.Key, tree object.Tree, stored types.UID) error {
	uid := object.StringAt(object.Metadata(tree), "uid")
	if uid == "" || types.UID(uid) == stored {
		return nil
	}
	return apierrors.NewConflict(d.GroupResource(), key.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", d.Plural, key, uid, stored))
}

// checkPreconditions compares the UID and the version of an update with those of the stored object.
func checkPreconditions(d *registry.Definition, old *store.Record, tree object.Tree, w Write) error {
	if err := checkUID(d, old.Key, tree, old.UID()); err != nil {
		return err
	}
	meta := object.Metadata(tree)
	version := object.StringAt(meta, "resourceVersion")
	if version == "" || version == "0" {
		if d.Unconditional || w.Direct || w.upsert {
			return nil
		}
		kind := schema.GroupKind{Group: d.Group, Kind: d.Plural} // kube-apiserver writes the resource here
		return apierrors.NewInvalid(kind, old.Key.Name, field.ErrorList{
			field.Invalid(metaPath.Child("resourceVersion"), 0, "must be specified for an update"),
		})
	}
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return store.StorageError(err)
	}
	if parsed != old.Version {
		return apierrors.NewConflict(d.GroupResource(), old.Key.Name, errModified)
	}
	return nil
}

// stored finishes a write: a CustomResourceDefinition becomes a resource.
func (wr *Writer) stored(c *store.Collection) func(*store.Record, error) (*store.Record, error) {
	return func(r *store.Record, err error) (*store.Record, error) {
		if err == nil && c.Definition().IsCRD() {
			wr.settle(r.Key.Name)
		}
		return r, err
	}
}
