package writer

import (
	"errors"
	"fmt"

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
	if c.Get(key) != nil {
		return nil, apierrors.NewAlreadyExists(c.Definition().GroupResource(), key.Name)
	}
	if wr.options.ManagedFields {
		recordManager(c.Definition(), nil, tree, w)
	}
	if c.Definition().IsCRD() {
		if err := wr.establish(tree); err != nil {
			return nil, err
		}
	}
	if w.DryRun {
		return store.NewRecord(c.Definition(), tree, 0)
	}
	return wr.stored(c)(wr.store.Put(c, nil, tree))
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
	if object.StringAt(meta, "resourceVersion") != "" {
		return store.StorageError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	wr.generateName(c, meta)
	if err := checkNames(d, meta); err != nil {
		return err
	}
	if err := wr.checkNamespace(d, namespace, object.StringAt(meta, "name")); err != nil {
		return err
	}
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		delete(meta, name)
	}
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
