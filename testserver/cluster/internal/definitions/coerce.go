package definitions

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// coercer gives an untyped object the form that the decoder of a typed one would give it: known fields only, metadata
// of the right types, no null where the schema allows none.
type coercer struct {
	schema *schema
	repair bool // drop metadata of wrong types, and add a missing generation; for stored objects
	track  bool // collect unknown fields
	nulls  bool // keep a null where the schema allows none

	unknown []string // paths of removed fields
}

func (c *coercer) coerce(u *unstructured.Unstructured) error {
	kind, hasKind, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return err
	}
	apiVersion, hasVersion, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return err
	}
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: c.repair, ReturnUnknownFieldPaths: c.track,
	})
	if err != nil {
		return err
	}
	c.unknown = append(c.unknown, unknown...)
	gv, err := runtimeschema.ParseGroupVersion(apiVersion)
	if err != nil {
		return err
	}
	if gv.WithKind(kind).GroupKind() == c.schema.gk {
		if err := c.contents(u, c.schema.structural(gv.Version)); err != nil {
			return err
		}
		if c.repair && meta != nil && meta.Generation == 0 {
			meta.Generation = 1
		}
	}
	if hasKind {
		u.SetKind(kind)
	}
	if hasVersion {
		u.SetAPIVersion(apiVersion)
	}
	if hasMeta {
		return setMeta(u, meta)
	}
	return nil
}

// contents removes unknown fields and checks embedded objects.
func (c *coercer) contents(u *unstructured.Unstructured, s *structuralschema.Structural) error {
	if !c.schema.preserve {
		removed := pruning.PruneWithOptions(u.Object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: c.track})
		c.unknown = append(c.unknown, removed...)
		if !c.nulls {
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s)
		}
	}
	problem, removed := objectmeta.CoerceWithOptions(nil, u.Object, s, false, objectmeta.CoerceOptions{
		DropInvalidFields: c.repair, ReturnUnknownFieldPaths: c.track,
	})
	if problem != nil {
		return problem
	}
	c.unknown = append(c.unknown, removed...)
	return nil
}

func setMeta(u *unstructured.Unstructured, meta *metav1.ObjectMeta) error {
	return objectmeta.SetObjectMeta(u.Object, meta)
}

// structural returns the schema of a version, or nil.
func (s *schema) structural(version string) *structuralschema.Structural {
	if v := s.versions[version]; v != nil {
		return v.structural
	}
	return nil
}

// setDefaults adds the defaults of the schema of the object's version.
func (s *schema) setDefaults(u *unstructured.Unstructured) {
	gvk := u.GroupVersionKind()
	if gvk.GroupKind() == s.gk {
		defaulting.Default(u.Object, s.structural(gvk.Version))
	}
}
