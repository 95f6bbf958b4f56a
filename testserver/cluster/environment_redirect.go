package cluster

import (
	"cmp"
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// convertPath is the path of conversions in a webhook server of controller-runtime.
const convertPath = "/convert"

// redirect makes webhooks call the server of the test.
func (e *Environment) redirect(crds, configurations []manifest) {
	for _, m := range configurations {
		switch c := m.object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for i := range c.Webhooks {
				e.redirectWebhook(&c.Webhooks[i].ClientConfig)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range c.Webhooks {
				e.redirectWebhook(&c.Webhooks[i].ClientConfig)
			}
		}
	}
	kinds := convertible(cmp.Or(e.Scheme, scheme.Scheme))
	for _, m := range crds {
		d := &m.object.(*apiextensionsv1.CustomResourceDefinition).Spec
		kind := schema.GroupKind{Group: d.Group, Kind: d.Names.Kind}
		if kinds[kind] || e.WebhookInstallOptions.IgnoreSchemeConvertible && len(d.Versions) > 1 {
			addConversion(d)
		}
		if d.Conversion != nil && d.Conversion.Webhook != nil && d.Conversion.Webhook.ClientConfig != nil {
			e.redirectConversion(d.Conversion.Webhook.ClientConfig)
		}
	}
}

// resolvesServices reports whether the server calls webhooks by the names of their services. An existing cluster does
// not know the function that resolves them.
func (e *Environment) resolvesServices() bool {
	return e.Options.WebhookService != nil && !e.existing()
}

func (e *Environment) redirectWebhook(c *admissionregistrationv1.WebhookClientConfig) {
	o := &e.WebhookInstallOptions
	switch {
	case c.Service != nil && !e.resolvesServices():
		c.URL, c.Service, c.CABundle = o.at(c.Service.Path), nil, o.LocalServingCAData
	case c.Service == nil && len(c.CABundle) == 0:
		c.CABundle = o.LocalServingCAData
	}
}

func (e *Environment) redirectConversion(c *apiextensionsv1.WebhookClientConfig) {
	o := &e.WebhookInstallOptions
	switch {
	case c.Service != nil && !e.resolvesServices():
		c.URL, c.Service, c.CABundle = o.at(c.Service.Path), nil, o.LocalServingCAData
	case c.Service == nil && c.URL == nil: // of addConversion
		c.URL, c.CABundle = o.at(new(convertPath)), o.LocalServingCAData
	case c.Service == nil && len(c.CABundle) == 0:
		c.CABundle = o.LocalServingCAData
	}
}

// addConversion gives a definition a conversion webhook, unless it has one.
func addConversion(d *apiextensionsv1.CustomResourceDefinitionSpec) {
	if d.Conversion != nil && d.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return
	}
	d.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{}, ConversionReviewVersions: []string{"v1"},
		},
	}
}

// convertible returns the kinds of a scheme that have conversions of controller-runtime: several versions, of which one
// is the hub and all others convert to it. The interfaces are recognised by their methods, because this module does not
// depend on controller-runtime.
func convertible(s *runtime.Scheme) map[schema.GroupKind]bool {
	type versions struct{ hubs, spokes, all int }
	kinds := map[schema.GroupKind]versions{}
	for kind, t := range s.AllKnownTypes() {
		v := kinds[kind.GroupKind()]
		v.all++
		if t = reflect.PointerTo(t); t.Implements(hub) {
			v.hubs++
		} else if convertsBy(t, "ConvertTo") && convertsBy(t, "ConvertFrom") {
			v.spokes++
		}
		kinds[kind.GroupKind()] = v
	}
	out := map[schema.GroupKind]bool{}
	for kind, v := range kinds {
		if v.hubs == 1 && v.spokes > 0 && v.hubs+v.spokes == v.all {
			out[kind] = true
		}
	}
	return out
}

var hub = reflect.TypeFor[interface{ Hub() }]()

// convertsBy reports whether a type has a method with one argument, a hub.
func convertsBy(t reflect.Type, method string) bool {
	m, ok := t.MethodByName(method)
	return ok && m.Type.NumIn() == 2 && m.Type.In(1).Implements(hub) // the first argument is the receiver
}
