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

// Create stores a new object. The caller holds the lock and does not use tree afterwards.
func (wr *Writer) Create(c *store.Collection, namespace string, tree object.Tree, w Write) (*store.Record, error) {
	if err := wr.prepareNew(c, namespace, tree, w); err != nil {
		return nil, err
	}
	meta := object.Metadata(tree)
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	if err := checkUnversioned(meta, w); err != nil {
		return nil, err
	}
	if old := c.Get(key); old != nil {
		return nil, alreadyExists(c.Definition(), old)
	}
	if wr.options.ManagedFields {
		recordManager(c.Definition(), nil, tree, w)
	}
	if c.Definition().IsCRD() && wr.options.Settle == nil {
		if err := wr.establish(tree); err != nil {
			return nil, err
		}
	}
	if w.DryRun {
		return store.NewRecord(c.Definition(), tree, 0)
	}
	return wr.stored(c)(wr.store.Put(c, nil, tree))
}

// checkUnversioned rejects a new object with a version. As in kube-apiserver, the storage checks this: a dry run does
// not reach the storage, and the storage takes no notice of versions that are not numbers, or 0.
func checkUnversioned(meta object.Tree, w Write) error {
	version, err := strconv.ParseUint(object.StringAt(meta, "resourceVersion"), 10, 64)
	if w.DryRun || err != nil || version == 0 {
		return nil
	}
	return store.StorageError(errors.New("resourceVersion should not be set on objects to be created"))
}

// prepareNew checks tree and adds the fields that the server sets in a new object.
func (wr *Writer) prepareNew(c *store.Collection, namespace string, tree object.Tree, w Write) error {
	d := c.Definition()
	if err := CheckShape(tree); err != nil {
		return err
	}
	if err := checkKind(d, tree, w); err != nil {
		return err
	}
	if err := checkIdentity(d, tree, api.Key{Namespace: namespace}); err != nil {
		return err
	}
	meta := object.Metadata(tree)
	wr.generateName(c, meta)
	if err := checkMetadata(d, meta); err != nil {
		return err
	}
	if err := wr.checkNamespace(d, namespace, object.StringAt(meta, "name")); err != nil {
		return err
	}
	wipe(meta)
	meta["uid"] = wr.store.NewUID()
	meta["creationTimestamp"] = now()
	if d.Generation {
		meta["generation"] = int64(1)
	}
	if d.Prepare != nil {
		d.Prepare(tree)
	}
	resetStatus(d, tree, w)
	return nil
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

// resetStatus removes a status that the creator may not set because status is a subresource.
func resetStatus(d *registry.Definition, tree object.Tree, w Write) {
	if d.NoStatus || w.Direct && tree["status"] != nil {
		return
	}
	delete(tree, "status")
	if d.ResetStatus != nil {
		tree["status"] = d.ResetStatus()
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
