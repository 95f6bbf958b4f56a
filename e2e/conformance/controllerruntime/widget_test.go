package controllerruntime_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

var widgets = schema.GroupVersion{Group: "conformance.example.com", Version: "v1"}

// Widget is a custom resource that owns a Deployment.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WidgetSpec   `json:"spec,omitzero"`
	Status WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is the desired state. Size is 2 by default, and at most 10.
type WidgetSpec struct {
	Size  *int32       `json:"size,omitempty"`
	Parts []WidgetPart `json:"parts,omitempty"`
}

// WidgetPart is an element of a list with the key Name.
type WidgetPart struct {
	Name  string `json:"name"`
	Color string `json:"color,omitempty"`
}

// WidgetStatus is the state that the controller has seen.
type WidgetStatus struct {
	Replicas int32 `json:"replicas,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Widget `json:"items"`
}

func (w *Widget) copy() *Widget {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	if w.Spec.Size != nil {
		size := *w.Spec.Size
		c.Spec.Size = &size
	}
	c.Spec.Parts = append([]WidgetPart(nil), w.Spec.Parts...)
	return &c
}

// DeepCopyObject returns a copy.
func (w *Widget) DeepCopyObject() runtime.Object { return w.copy() }

// DeepCopyObject returns a copy.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for _, w := range l.Items {
		c.Items = append(c.Items, *w.copy())
	}
	return &c
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	type props = map[string]apiextensionsv1.JSONSchemaProps
	ten, listMap, path := 10.0, "map", ".status.replicas"
	size := apiextensionsv1.JSONSchemaProps{
		Type: "integer", Format: "int32", Maximum: &ten, Default: &apiextensionsv1.JSON{Raw: []byte("2")},
	}
	part := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"name"}, Properties: props{"name": {Type: "string"}, "color": {Type: "string"}},
	}
	parts := apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: &listMap, XListMapKeys: []string{"name"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &part},
	}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: props{"size": size, "parts": parts}, Default: &apiextensionsv1.JSON{Raw: []byte("{}")},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "!has(self.size) || self.size != 7", Message: "seven is not a size"}},
	}
	status := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: props{"replicas": {Type: "integer", Format: "int32"}}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgets.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: props{"spec": spec, "status": status},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size", StatusReplicasPath: path},
				},
			}},
		},
	}
}
