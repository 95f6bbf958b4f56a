package typed

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/testserver/internal/object"
)

// readMetadata sets into to the metadata in a tree, without the fieldsV1 of managers. It returns false if a member has
// a wrong type. Nearly all metadata have plain values and are read here. The converter of apimachinery reads the others
// and takes longer.
func readMetadata(tree object.Tree, into *metav1.ObjectMeta) bool {
	*into = metav1.ObjectMeta{}
	if readPlain(tree, into) {
		return true
	}
	*into = metav1.ObjectMeta{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(withoutSets(tree), into) == nil
}

// readPlain returns false for metadata with values that it does not know.
func readPlain(tree object.Tree, into *metav1.ObjectMeta) bool {
	for name, value := range tree {
		ok := true
		switch name {
		case "name":
			into.Name, ok = value.(string)
		case "generateName":
			into.GenerateName, ok = value.(string)
		case "namespace":
			into.Namespace, ok = value.(string)
		case "selfLink":
			ok = false // no longer used
		case "uid":
			into.UID, ok = uidOf(value)
		case "resourceVersion":
			into.ResourceVersion, ok = value.(string)
		case "generation":
			into.Generation, ok = value.(int64)
		case "creationTimestamp":
			ok = value == nil || readTime(value, &into.CreationTimestamp)
		case "deletionTimestamp":
			into.DeletionTimestamp = &metav1.Time{}
			ok = readTime(value, into.DeletionTimestamp)
		case "deletionGracePeriodSeconds":
			var seconds int64
			seconds, ok = value.(int64)
			into.DeletionGracePeriodSeconds = &seconds
		case "labels":
			into.Labels, ok = textsIn(value)
		case "annotations":
			into.Annotations, ok = textsIn(value)
		case "ownerReferences":
			into.OwnerReferences, ok = each(value, readOwner)
		case "finalizers":
			into.Finalizers, ok = each(value, func(value any) (text string, ok bool) {
				text, ok = value.(string)
				return text, ok
			})
		case managedFields:
			into.ManagedFields, ok = each(value, readManager)
		}
		if !ok {
			return false
		}
	}
	return true
}

func readOwner(value any) (out metav1.OwnerReference, ok bool) {
	members, ok := value.(object.Tree)
	for name, value := range members {
		switch name {
		case "apiVersion":
			out.APIVersion, ok = value.(string)
		case "kind":
			out.Kind, ok = value.(string)
		case "name":
			out.Name, ok = value.(string)
		case "uid":
			out.UID, ok = uidOf(value)
		case "controller":
			out.Controller, ok = flagOf(value)
		case "blockOwnerDeletion":
			out.BlockOwnerDeletion, ok = flagOf(value)
		}
		if !ok {
			return out, false
		}
	}
	return out, ok
}

func readManager(value any) (out metav1.ManagedFieldsEntry, ok bool) {
	members, ok := value.(object.Tree)
	for name, value := range members {
		switch name {
		case "manager":
			out.Manager, ok = value.(string)
		case "operation":
			var operation string
			operation, ok = value.(string)
			out.Operation = metav1.ManagedFieldsOperationType(operation)
		case "apiVersion":
			out.APIVersion, ok = value.(string)
		case "time":
			out.Time = &metav1.Time{}
			ok = readTime(value, out.Time)
		case "fieldsType":
			out.FieldsType, ok = value.(string)
		case "subresource":
			out.Subresource, ok = value.(string)
		}
		if !ok {
			return out, false
		}
	}
	return out, ok
}

func uidOf(value any) (types.UID, bool) {
	text, ok := value.(string)
	return types.UID(text), ok
}

func flagOf(value any) (*bool, bool) {
	flag, ok := value.(bool)
	return &flag, ok
}

func readTime(value any, into *metav1.Time) bool {
	text, ok := value.(string)
	if !ok {
		return false
	}
	at, err := time.Parse(time.RFC3339, text)
	into.Time = at.Local()
	return err == nil
}

func textsIn(value any) (map[string]string, bool) {
	members, ok := value.(object.Tree)
	if !ok {
		return nil, false
	}
	out := make(map[string]string, len(members))
	for name, value := range members {
		text, ok := value.(string)
		if !ok {
			return nil, false
		}
		out[name] = text
	}
	return out, true
}

func each[T any](value any, read func(any) (T, bool)) ([]T, bool) {
	items, ok := value.([]any)
	if !ok {
		return nil, false
	}
	out := make([]T, len(items))
	for i, item := range items {
		if out[i], ok = read(item); !ok {
			return nil, false
		}
	}
	return out, true
}
