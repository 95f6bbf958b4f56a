package writer

import (
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

var metaPath = field.NewPath("metadata")

// CheckShape rejects metadata with fields of wrong types, as a typed decoder does, and removes empty fields.
func CheckShape(tree object.Tree) error {
	if m, ok := tree["metadata"]; ok && m != nil {
		if _, ok := m.(object.Tree); !ok {
			return wrongType("metadata", "an object")
		}
	}
	meta := object.Metadata(tree)
	for name, value := range meta {
		if value == nil {
			delete(meta, name)
			continue
		}
		if err := checkMetaField(meta, name, value); err != nil {
			return err
		}
	}
	return nil
}

func checkMetaField(meta object.Tree, name string, value any) error {
	switch name {
	case "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp",
		"deletionTimestamp":
		s, ok := value.(string)
		if !ok {
			return wrongType("metadata."+name, "a string")
		}
		if s == "" {
			delete(meta, name)
		}
	case "generation":
		n, ok := value.(int64)
		if !ok {
			return wrongType("metadata.generation", "a number")
		}
		if n == 0 {
			delete(meta, name)
		}
	case "labels", "annotations":
		m, ok := value.(object.Tree)
		if !ok {
			return wrongType("metadata."+name, "an object")
		}
		for k, v := range m {
			if _, ok := v.(string); !ok {
				return wrongType("metadata."+name+"."+k, "a string")
			}
		}
		if len(m) == 0 {
			delete(meta, name)
		}
	case "ownerReferences", "finalizers", "managedFields":
		list, ok := value.([]any)
		if !ok {
			return wrongType("metadata."+name, "a list")
		}
		if name == "finalizers" && slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
			return wrongType("metadata.finalizers", "a list of strings")
		}
		if len(list) == 0 {
			delete(meta, name)
		}
	}
	return nil
}

func wrongType(path, want string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided cannot be decoded: %s must be %s", path, want))
}

// checkKind rejects an object of another kind or version than that of the request. Custom resources must have both
// fields.
func checkKind(d *registry.Definition, tree object.Tree, served string) error {
	r := d.In(served)
	kind, version := object.StringAt(tree, "kind"), object.StringAt(tree, "apiVersion")
	if d.Custom {
		return checkCustomKind(r, kind, version, object.StringAt(object.Metadata(tree), "name"))
	}
	if kind != "" && kind != r.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", kind, r.Kind))
	}
	if want := r.GroupVersion().String(); version != "" && version != want {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", version, want))
	}
	return nil
}

func checkCustomKind(r api.Resource, kind, version, name string) error {
	switch {
	case kind == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): "+
			"Object 'Kind' is missing", r.Kind))
	case version != r.GroupVersion().String():
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", version, r.GroupVersion()))
	case kind != r.Kind:
		return apierrors.NewInvalid(schema.GroupKind{Group: r.Group, Kind: kind}, name, field.ErrorList{
			field.Invalid(field.NewPath("kind"), kind, "must be "+r.Kind),
		})
	}
	return nil
}

// checkIdentity sets the name and the namespace of the request in tree, and rejects different ones.
func checkIdentity(d *registry.Definition, tree object.Tree, key api.Key) error {
	meta := object.Metadata(tree)
	if !d.Namespaced {
		delete(meta, "namespace")
	} else {
		if ns := object.StringAt(meta, "namespace"); ns != "" && ns != key.Namespace {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		meta["namespace"] = key.Namespace
	}
	if key.Name == "" {
		return nil
	}
	if name := object.StringAt(meta, "name"); name != "" && name != key.Name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", name, key.Name))
	}
	meta["name"] = key.Name
	return nil
}

// checkMetadata returns the errors that kube-apiserver finds in the metadata of every object.
func checkMetadata(d *registry.Definition, meta object.Tree) error {
	var errs field.ErrorList
	name := object.StringAt(meta, "name")
	switch {
	case name == "":
		errs = append(errs, field.Required(metaPath.Child("name"), "name or generateName is required"))
	default:
		check := validation.IsDNS1123Subdomain
		if d.Plural == "namespaces" && d.Group == "" {
			check = validation.IsDNS1123Label
		}
		for _, problem := range check(name) {
			errs = append(errs, field.Invalid(metaPath.Child("name"), name, problem))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(object.Labels(meta), metaPath.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(object.Annotations(meta), metaPath.Child("annotations"))...)
	if list := object.SliceAt(meta, "ownerReferences"); len(list) > 0 {
		var owners []metav1.OwnerReference
		encoded, err := json.Marshal(list)
		if err == nil {
			err = json.Unmarshal(encoded, &owners)
		}
		if err != nil {
			return wrongType("metadata.ownerReferences", "a list of owners")
		}
		errs = append(errs, apivalidation.ValidateOwnerReferences(owners, metaPath.Child("ownerReferences"))...)
	}
	if finalizers := object.StringsAt(meta, "finalizers"); len(finalizers) > 0 {
		errs = append(errs, apivalidation.ValidateFinalizers(finalizers, metaPath.Child("finalizers"))...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(d.GroupVersionKind().GroupKind(), name, errs)
	}
	return nil
}

// invalid returns a 422 with one cause.
func invalid(d *registry.Definition, name string, problem *field.Error) error {
	return apierrors.NewInvalid(d.GroupVersionKind().GroupKind(), name, field.ErrorList{problem})
}
