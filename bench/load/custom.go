package load

import (
	"fmt"
	"strings"
)

// The group and the version of the custom resources.
const (
	CustomGroup   = "bench.example.com"
	CustomVersion = "v1"
)

// CustomKind returns the kind of a custom resource.
func CustomKind(resource int) string { return fmt.Sprintf("Composite%d", resource) }

// CustomPlural returns the plural name of a custom resource.
func CustomPlural(resource int) string { return strings.ToLower(CustomKind(resource)) + "s" }

// CustomNamespace returns the name of a namespace.
func CustomNamespace(i int) string { return fmt.Sprintf("team-%d", i) }

// CustomIn returns object i of a custom resource in a namespace as JSON, without a line break: 2 KB, like a composite
// resource with its references, conditions and the fields of two managers.
func CustomIn(namespace, resource, i int) []byte {
	kind, id := CustomKind(resource), mix(uint64(resource)<<32|uint64(i), 7)
	name := fmt.Sprintf("%s-%08x", strings.ToLower(kind), uint32(id))
	var refs, conditions, fields strings.Builder
	for j := range 3 {
		fmt.Fprintf(&refs, `,{"apiVersion":"provider.example.com/v1beta1","kind":"Part%d","name":"%s-part-%d"}`, j, name, j)
	}
	for j, c := range []string{"Synced", "Ready"} {
		fmt.Fprintf(&conditions, `,{"type":%q,"status":"True","reason":"Available","lastTransitionTime":"2026-01-02T03:04:%02dZ","observedGeneration":%d}`, c, j, j+1)
	}
	for _, m := range []string{"composer", "provider"} {
		fmt.Fprintf(&fields, `,{"manager":%q,"operation":"Apply","apiVersion":"%s/%s","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{},"f:claim":{}}},"f:spec":{"f:parameters":{"f:region":{},"f:size":{},"f:storageGB":{}},"f:resourceRefs":{}},"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}}`,
			m, CustomGroup, CustomVersion)
	}
	return fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":"%08x-0000-4000-8000-%012x","resourceVersion":"%d","generation":3,`+
		`"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":%q,"claim":"%s-claim"},"finalizers":["composite.example.com/finalizer"],"managedFields":[%s]},`+
		`"spec":{"parameters":{"region":"eu-central-%d","size":"medium","storageGB":%d,"backup":true},"deletionPolicy":"Delete","compositionRef":{"name":"%s-composition"},"resourceRefs":[%s]},`+
		`"status":{"conditions":[%s],"endpoint":"https://%s.svc.example.com:8443","observedGeneration":3}}`,
		CustomGroup, CustomVersion, kind, name, CustomNamespace(namespace), uint32(id>>32), id&0xffffffffffff, FirstVersion-1, strings.ToLower(kind), name, fields.String()[1:],
		i%3, 10+i%50, strings.ToLower(kind), refs.String()[1:], conditions.String()[1:], name)
}
