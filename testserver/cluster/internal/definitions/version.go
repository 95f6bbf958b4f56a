package definitions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// version is one version of a custom resource, also one that is not served.
type version struct {
	name       string
	kind       runtimeschema.GroupVersionKind
	namespaced bool
	raw        *apiextensionsv1.CustomResourceDefinitionVersion
	internal   *apiextensions.CustomResourceValidation
	structural *structuralschema.Structural // nil without a schema
	warnings   []string

	strategies func() (strategies, error) // compiles the rules of the schema when it is first called
	table      func() rest.TableConvertor
}

// strategies are the rules for writes to objects and to their status.
type strategies struct {
	object objectStrategy
	status rest.RESTUpdateStrategy
}

type objectStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

func newVersion(crd *apiextensionsv1.CustomResourceDefinition, raw *apiextensionsv1.CustomResourceDefinitionVersion) (*version, error) {
	v := &version{
		name:       raw.Name,
		kind:       runtimeschema.GroupVersionKind{Group: crd.Spec.Group, Version: raw.Name, Kind: crd.Status.AcceptedNames.Kind},
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		raw:        raw,
	}
	if err := v.parseSchema(crd.Spec.PreserveUnknownFields); err != nil {
		return nil, fmt.Errorf("definitions: version %s: %w", raw.Name, err)
	}
	if raw.Deprecated {
		v.warnings = []string{deprecation(crd, raw)}
	}
	v.strategies = sync.OnceValues(v.newStrategies)
	v.table = sync.OnceValue(v.newTable)
	return v, nil
}

// parseSchema converts the schema into the forms that the library needs. preserve allows a schema that is not
// structural; only definitions from before apiextensions.k8s.io/v1 have one.
func (v *version) parseSchema(preserve bool) error {
	if v.raw.Schema == nil {
		return nil
	}
	v.internal = &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.raw.Schema, v.internal, nil)
	if err != nil {
		return fmt.Errorf("convert the schema: %w", err)
	}
	s, err := structuralschema.NewStructural(v.internal.OpenAPIV3Schema)
	switch {
	case preserve:
		v.structural = s
		return nil
	case err != nil:
		return fmt.Errorf("parse the schema: %w", err)
	}
	v.structural = s.DeepCopy() // the library shares default values with the definition
	if err := defaulting.PruneDefaults(v.structural); err != nil {
		return fmt.Errorf("prune the defaults: %w", err)
	}
	return nil
}

// newStrategies builds the validators. Rules in CEL are compiled here.
func (v *version) newStrategies() (strategies, error) {
	var root *apiextensions.JSONSchemaProps
	if v.internal != nil {
		root = v.internal.OpenAPIV3Schema
	}
	whole, _, err := validation.NewSchemaValidator(root)
	if err != nil {
		return strategies{}, fmt.Errorf("definitions: version %s: %w", v.name, err)
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var ofStatus validation.SchemaValidator
	if v.hasStatus() {
		status = &apiextensions.CustomResourceSubresourceStatus{}
		if root != nil {
			if part, ok := root.Properties["status"]; ok {
				if ofStatus, _, err = validation.NewSchemaValidator(&part); err != nil {
					return strategies{}, fmt.Errorf("definitions: version %s: %w", v.name, err)
				}
			}
		}
	}
	object := customresource.NewStrategy(crdserverscheme.NewUnstructuredObjectTyper(), v.namespaced, v.kind, whole, ofStatus,
		v.structural, status, v.scale(), v.raw.SelectableFields)
	return strategies{
		object: orderedObject{object}, status: orderedStatus{customresource.NewStatusStrategy(object)},
	}, nil
}

// orderedObject sorts the errors of a strategy. The library finds them in the order of maps, which is random.
type orderedObject struct{ objectStrategy }

func (o orderedObject) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return ordered(o.objectStrategy.Validate(ctx, obj))
}

func (o orderedObject) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return ordered(o.objectStrategy.ValidateUpdate(ctx, obj, old))
}

// orderedStatus does the same for the rules of the status.
type orderedStatus struct{ rest.RESTUpdateStrategy }

func (o orderedStatus) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return ordered(o.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old))
}

// ordered sorts errors. Those of the metadata come first and keep their order. The others are sorted by field: the
// errors of scale paths, which begin with a point, come after the others, and errors without a field come last. Errors
// of one field keep their order, such as those of the type and of the enum, except those of labels and annotations:
// these are maps, whose errors have no path of their own.
func ordered(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		byField := 0
		if class(a) > 0 {
			byField = cmp.Compare(a.Field, b.Field)
		}
		return cmp.Or(cmp.Compare(class(a), class(b)), byField)
	})
	for from := 0; from < len(errs); {
		to := from + 1
		for to < len(errs) && errs[to].Field == errs[from].Field {
			to++
		}
		if f := errs[from].Field; strings.HasSuffix(f, "metadata.labels") || strings.HasSuffix(f, "metadata.annotations") {
			slices.SortStableFunc(errs[from:to], byContent)
		}
		from = to
	}
	return errs
}

func class(e *field.Error) int {
	switch {
	case strings.HasPrefix(e.Field, "metadata."):
		return 0
	case e.Field == "<nil>":
		return 3
	case strings.HasPrefix(e.Field, "."):
		return 2
	}
	return 1
}

func byContent(a, b *field.Error) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ErrorBody(), b.ErrorBody()))
}

func (v *version) hasStatus() bool {
	return v.raw.Subresources != nil && v.raw.Subresources.Status != nil
}

// scale returns the scale subresource, or nil.
func (v *version) scale() *apiextensions.CustomResourceSubresourceScale {
	if v.raw.Subresources == nil || v.raw.Subresources.Scale == nil {
		return nil
	}
	s := v.raw.Subresources.Scale
	return &apiextensions.CustomResourceSubresourceScale{
		SpecReplicasPath: s.SpecReplicasPath, StatusReplicasPath: s.StatusReplicasPath, LabelSelectorPath: s.LabelSelectorPath,
	}
}

// served returns what the server needs to know of a version.
func (v *version) served() registry.Served {
	out := registry.Served{Status: v.hasStatus(), Warnings: v.warnings}
	if s := v.scale(); s != nil {
		out.ScaleColumns = scaleColumns
		out.Scale = &registry.ScalePaths{Replicas: split(s.SpecReplicasPath), StatusReplicas: split(s.StatusReplicasPath)}
		if s.LabelSelectorPath != nil && *s.LabelSelectorPath != "" {
			out.Scale.Selector = split(*s.LabelSelectorPath)
		}
	}
	for _, f := range v.raw.SelectableFields {
		out.Fields = append(out.Fields, strings.TrimPrefix(f.JSONPath, "."))
	}
	return out
}

func split(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// deprecation returns the warning for requests in a deprecated version. By default, it names the newest served version
// that is newer and not deprecated.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	newest := ""
	for _, other := range crd.Spec.Versions {
		if other.Served && !other.Deprecated && kubeversion.CompareKubeAwareVersionStrings(other.Name, v.Name) > 0 &&
			(newest == "" || kubeversion.CompareKubeAwareVersionStrings(other.Name, newest) > 0) {
			newest = other.Name
		}
	}
	if newest != "" {
		text += fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, newest, crd.Spec.Names.Kind)
	}
	return text
}

// newTable returns the printer columns. kube-apiserver prints names alone if a column is invalid.
func (v *version) newTable() rest.TableConvertor {
	columns := v.raw.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = ageColumn()
	}
	table, _ := tableconvertor.New(slices.Clone(columns)) // with an error, it returns the columns before the invalid one
	return table
}

func ageColumn() []apiextensionsv1.CustomResourceColumnDefinition {
	return []apiextensionsv1.CustomResourceColumnDefinition{{
		Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}}
}

// newScaleTable returns the columns of a Scale.
func newScaleTable() rest.TableConvertor {
	columns := append([]apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Desired", Type: "integer", Description: "Number of desired replicas", JSONPath: ".spec.replicas"},
		{Name: "Available", Type: "integer", Description: "Number of actual replicas", JSONPath: ".status.replicas"},
	}, ageColumn()...)
	table, _ := tableconvertor.New(columns) // the columns are valid
	return table
}
