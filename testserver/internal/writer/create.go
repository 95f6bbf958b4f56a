package writer

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// checkUnversioned rejects a new object with a version. As in kube-apiserver, the storage checks this: a dry run does
// not reach the storage, and the storage takes no notice of versions that are not numbers, or 0.
func checkUnversioned(meta object.Tree, w Write) error {
	version, err := strconv.ParseUint(object.StringAt(meta, "resourceVersion"), 10, 64)
	if w.DryRun || err != nil || version == 0 {
		return nil
	}
	return store.StorageError(errors.New("resourceVersion should not be set on objects to be created"))
}

// alreadyExists returns the 409 for a new object whose name is taken.
func alreadyExists(d *registry.Definition, old *store.Record) error {
	err := apierrors.NewAlreadyExists(d.GroupResource(), old.Key.Name)
	if old.Deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// wipe removes what only a deletion sets, and what is not used any more.
func wipe(meta object.Tree) {
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		delete(meta, name)
	}
}

func (wr *Writer) generateName(c *store.Collection, meta object.Tree) {
	prefix := object.StringAt(meta, "generateName")
	if prefix == "" || object.StringAt(meta, "name") != "" {
		return
	}
	const room = 63 - 5
	if len(prefix) > room {
		prefix = prefix[:room]
	}
	for {
		name := prefix + wr.store.NewSuffix()
		if c.Get(api.Key{Namespace: object.StringAt(meta, "namespace"), Name: name}) == nil {
			meta["name"] = name
			return
		}
	}
}

// checkNamespace rejects new objects in a namespace that is being deleted or, if the server is strict, does not exist.
func (wr *Writer) checkNamespace(d *registry.Definition, namespace, name string) error {
	if !d.Namespaced {
		return nil
	}
	ns := wr.store.Collection(registry.Namespaces).Get(api.Key{Name: namespace})
	switch {
	case ns == nil && wr.options.StrictNamespaces:
		return apierrors.NewNotFound(registry.Namespaces, namespace)
	case ns != nil && ns.Deleting:
		err := apierrors.NewForbidden(d.GroupResource(), name, fmt.Errorf(
			"unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    "NamespaceTerminating",
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field:   "metadata.namespace",
		})
		return err
	}
	return nil
}
