package definitions

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// schema has the rules of a custom resource. It implements registry.Schema.
type schema struct {
	gk        runtimeschema.GroupKind
	preserve  bool // unknown fields stay, and there are no defaults
	storage   string
	versions  map[string]*version
	converter runtime.ObjectConvertor
	crd       *apiextensionsv1.CustomResourceDefinition
	types     func() managedfields.TypeConverter
}

// CustomResourceDefinition returns the definition of the resource. OpenAPI describes it.
func (s *schema) CustomResourceDefinition() *apiextensionsv1.CustomResourceDefinition { return s.crd }

// TypeConverter returns the types of all versions. Policies merge with them. It is nil if the schemas have no types.
func (s *schema) TypeConverter() managedfields.TypeConverter { return s.types() }

func typesOf(crd *apiextensionsv1.CustomResourceDefinition) managedfields.TypeConverter {
	schemas, err := openapi.CustomSchemas(crd)
	if err != nil {
		return nil
	}
	types, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		return nil
	}
	return types
}

func (d *Definitions) newSchema(crd *apiextensionsv1.CustomResourceDefinition) (*schema, error) {
	s := &schema{
		gk:       runtimeschema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind},
		preserve: crd.Spec.PreserveUnknownFields,
		versions: map[string]*version{},
		crd:      crd,
		types:    sync.OnceValue(func() managedfields.TypeConverter { return typesOf(crd) }),
	}
	for i := range crd.Spec.Versions {
		raw := &crd.Spec.Versions[i]
		v, err := newVersion(crd, raw)
		if err != nil {
			return nil, err
		}
		s.versions[raw.Name] = v
		if raw.Storage {
			s.storage = raw.Name
		}
	}
	if s.storage == "" {
		return nil, errors.New("definitions: the definition has no storage version")
	}
	converters, err := d.converters()
	if err == nil {
		_, s.converter, err = converters.NewConverter(crd)
	}
	if err != nil {
		return nil, fmt.Errorf("definitions: prepare the conversion: %w", err)
	}
	return s, nil
}

func (s *schema) perVersion() map[string]registry.Served {
	out := map[string]registry.Served{}
	for name, v := range s.versions {
		if v.raw.Served {
			out[name] = v.served()
		}
	}
	return out
}

// version returns a version of the resource. Requests come for served versions only.
func (s *schema) version(name string) (*version, error) {
	if v := s.versions[name]; v != nil {
		return v, nil
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("definitions: %s has no version %q", s.gk, name))
}

// table returns the printer columns of a version.
func (s *schema) table(served string) (rest.TableConvertor, error) {
	v, err := s.version(served)
	if err != nil {
		return nil, err
	}
	return v.table(), nil
}

// Create implements registry.Schema.
func (s *schema) Create(op registry.Operation, tree object.Tree) (object.Tree, []string, error) {
	if op.Subresource == "scale" {
		return tree, nil, nil // the rules of the resource apply to the replicas
	}
	v, err := s.version(op.Served)
	if err != nil {
		return nil, nil, err
	}
	rules, err := v.strategies()
	if err != nil {
		return nil, nil, err
	}
	var strategy rest.RESTCreateStrategy = rules.object
	if op.Direct {
		strategy = direct{objectStrategy: rules.object}
	}
	u := &unstructured.Unstructured{Object: tree}
	ctx, warnings := validationContext(u)
	if err := rest.BeforeCreate(strategy, ctx, u); err != nil {
		return nil, nil, err
	}
	stored, err := s.store(v, u)
	return stored, *warnings, err
}

// Update implements registry.Schema.
func (s *schema) Update(op registry.Operation, before, tree object.Tree) (object.Tree, []string, error) {
	v, err := s.version(op.Served)
	if err != nil {
		return nil, nil, err
	}
	rules, err := v.strategies()
	if err != nil {
		return nil, nil, err
	}
	old, err := s.Convert(op.Served, before)
	if err != nil {
		return nil, nil, err
	}
	var strategy rest.RESTUpdateStrategy = rules.object
	switch {
	case op.Subresource == "status":
		strategy = rules.status
	case op.Direct:
		strategy = direct{objectStrategy: rules.object}
	}
	u := &unstructured.Unstructured{Object: tree}
	ctx, warnings := validationContext(u)
	if err := rest.BeforeUpdate(strategy, ctx, u, &unstructured.Unstructured{Object: old}); err != nil {
		return nil, *warnings, err
	}
	stored, err := s.store(v, u)
	return stored, *warnings, err
}

// validationContext returns a context for the library, and the warnings that it reports there.
func validationContext(u *unstructured.Unstructured) (context.Context, *[]string) {
	found := &recorder{}
	ctx := request.WithNamespace(context.Background(), u.GetNamespace())
	return warning.WithWarningRecorder(ctx, found), &found.texts
}

// recorder keeps warnings.
type recorder struct{ texts []string }

// AddWarning implements warning.Recorder.
func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

// direct are the rules for writes by methods in Go, which may also set the status.
type direct struct{ objectStrategy }

func (d direct) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	keepStatus(obj, func() { d.objectStrategy.PrepareForCreate(ctx, obj) })
}

func (d direct) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	keepStatus(obj, func() { d.objectStrategy.PrepareForUpdate(ctx, obj, old) })
}

func keepStatus(obj runtime.Object, prepare func()) {
	tree := obj.(*unstructured.Unstructured).Object //nolint:forcetypeassert // the callers are Create and Update
	status := tree["status"]
	prepare()
	object.SetOrDrop(tree, "status", status)
}

// store converts an object to the storage version. kube-apiserver sets the defaults of this version when it reads the
// stored object.
func (s *schema) store(v *version, u *unstructured.Unstructured) (object.Tree, error) {
	if v.name == s.storage {
		return u.Object, nil
	}
	tree, err := s.convert(u, s.storage)
	if err != nil {
		return nil, err
	}
	s.setDefaults(&unstructured.Unstructured{Object: tree})
	return tree, nil
}

// Convert implements registry.Schema. A stored object that was written before the definition changed gets the present
// defaults of its version and loses unknown fields, as in kube-apiserver.
func (s *schema) Convert(served string, stored object.Tree) (object.Tree, error) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(stored)}
	from := s.storedVersion(stored)
	u.SetGroupVersionKind(s.gk.WithVersion(from))
	c := coercer{schema: s, repair: true}
	if err := c.coerce(u); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	s.setDefaults(u)
	if from == served {
		return u.Object, nil
	}
	return s.convert(u, served)
}

// storedVersion returns the version of a stored object. It may be older than the present storage version.
func (s *schema) storedVersion(stored object.Tree) string {
	gv, err := runtimeschema.ParseGroupVersion(object.StringAt(stored, "apiVersion"))
	if err != nil || s.versions[gv.Version] == nil {
		return s.storage
	}
	return gv.Version
}

// convert returns an object in another version, without fields that this version does not have. It may change u.
func (s *schema) convert(u *unstructured.Unstructured, to string) (object.Tree, error) {
	out, err := s.converted(u, to)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	c := coercer{schema: s}
	if err := c.coerce(out); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return out.Object, nil
}

// Converted returns an object in another version as admission sees it: without defaults, and with unknown fields.
func (s *schema) Converted(tree object.Tree, to string) (object.Tree, error) {
	out, err := s.converted(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(tree)}, to)
	if err != nil {
		return nil, err
	}
	return out.Object, nil
}

// converted returns what the conversion of the definition makes of an object. It may change u.
func (s *schema) converted(u *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
	out, err := s.converter.ConvertToVersion(u, runtimeschema.GroupVersion{Group: s.gk.Group, Version: to})
	if err != nil {
		return nil, err
	}
	converted, ok := out.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("definitions: converted %s into %T", s.gk, out)
	}
	return converted, nil
}

// MediaTypes implements registry.Schema.
func (s *schema) MediaTypes() []string { return []string{jsonType, yamlType} }

// Encode implements registry.Schema.
func (s *schema) Encode(mediaType string, tree object.Tree) ([]byte, error) {
	if mediaType != yamlType {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: cannot encode custom resources as %s", mediaType))
	}
	encoded, err := yaml.Marshal(tree)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: encode YAML: %w", err))
	}
	return encoded, nil
}
