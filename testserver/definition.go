package testserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leatproject/leat/api"
)

// Definition is a resource that the server serves.
// It corresponds to a CustomResourceDefinition, of which Server.Define needs none.
type Definition struct {
	api.Resource

	// Versions are served besides Resource.Version, with the same objects under another apiVersion.
	Versions []string
	// Singular is the lower-case kind when it is empty.
	Singular   string
	ShortNames []string
	Categories []string
	// NoStatus leaves out the status subresource; status is then a field like any other.
	NoStatus bool
	// SelectableFields are paths such as "spec.host" that field selectors may ask for besides metadata.name and
	// metadata.namespace.
	SelectableFields []string
}

// definition is a Definition with the habits that kube-apiserver's built-in resources have and custom ones do not.
type definition struct {
	Definition

	crd            bool // made by a CustomResourceDefinition
	custom         bool // items of lists carry kind and apiVersion; an update needs a version
	generation     bool // metadata.generation counts changes outside metadata and status
	unconditional  bool // an update may leave the version out
	createOnUpdate bool // an update of what does not exist creates it
	returnsDeleted bool // a deletion answers with the object instead of a Status
	graceful       bool // a deletion waits for the kubelet (pods)
	scale          bool // has the scale subresource
	fields         func(object) []fieldValue
	prepare        func(object) // defaults of a new object
	resetStatus    func() any   // the status of a new object; nil for none
}

func (d *definition) singular() string {
	if d.Singular != "" {
		return d.Singular
	}
	return strings.ToLower(d.Kind)
}

func (d *definition) serves(version string) bool {
	return version == d.Version || slices.Contains(d.Versions, version)
}

func (d *definition) served() []string { return append([]string{d.Version}, d.Versions...) }

// in returns the resource as it is served under version.
func (d *definition) in(version string) api.Resource {
	r := d.Resource
	r.Version = version
	return r
}

// selectable tells whether a field selector may name the field.
func (d *definition) selectable(name string) bool {
	switch name {
	case "metadata.name", "metadata.namespace":
		return true
	}
	for _, f := range d.fieldNames() {
		if f == name {
			return true
		}
	}
	return false
}

func (d *definition) fieldNames() []string {
	if d.fields == nil {
		return nil
	}
	var names []string
	for _, f := range d.fields(object{}) {
		names = append(names, f.name)
	}
	return names
}

// customDefinition checks d and gives it the habits of a custom resource.
func customDefinition(d Definition) (*definition, error) {
	if d.Version == "" || d.Kind == "" || d.Plural == "" {
		return nil, fmt.Errorf("testserver: define %q: a resource needs a version, a kind and a plural name", d.Plural)
	}
	out := &definition{Definition: d, custom: true, generation: true}
	if len(d.SelectableFields) > 0 {
		out.fields = selectFields(d.SelectableFields...)
	}
	return out, nil
}

// selectFields returns a function that reads the given paths; what is missing is empty, or what stands after "=".
func selectFields(paths ...string) func(object) []fieldValue {
	missing := make([]fieldValue, len(paths))
	split := make([][]string, len(paths))
	for i, p := range paths {
		missing[i].name, missing[i].value, _ = strings.Cut(strings.TrimPrefix(p, "."), "=")
		split[i] = strings.Split(missing[i].name, ".")
	}
	return func(tree object) []fieldValue {
		out := slices.Clone(missing)
		for i, parts := range split {
			if value := valueAt(tree, parts); value != "" {
				out[i].value = value
			}
		}
		return out
	}
}

func valueAt(tree object, path []string) string {
	var value any = tree
	for _, part := range path {
		m, ok := value.(object)
		if !ok {
			return ""
		}
		value = m[part]
	}
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// builtin shortens the table below.
func builtin(group, version, kind, plural string, namespaced bool, shape func(*definition)) *definition {
	d := &definition{
		Definition: Definition{Resource: api.Resource{
			Group: group, Version: version, Kind: kind, Plural: plural, Namespaced: namespaced,
		}},
		unconditional: true,
	}
	d.NoStatus = true
	if shape != nil {
		shape(d)
	}
	return d
}

// builtins are the resources that every server has. The habits follow the strategies of kube-apiserver 1.36, but that the
// events of both groups are collections of their own here: an Event of one does not show in the other.
func builtins() []*definition {
	return []*definition{
		builtin("", "v1", "Namespace", "namespaces", false, shapeNamespace),
		builtin("", "v1", "Pod", "pods", true, shapePod),
		builtin("", "v1", "ConfigMap", "configmaps", true, short("cm")),
		builtin("", "v1", "Secret", "secrets", true, func(d *definition) {
			d.fields = selectFields("type")
			d.prepare = func(tree object) { setDefault(tree, "type", "Opaque") }
		}),
		builtin("", "v1", "Service", "services", true, func(d *definition) {
			d.ShortNames, d.Categories = []string{"svc"}, []string{"all"}
			d.NoStatus, d.createOnUpdate, d.returnsDeleted = false, true, true
			d.fields = selectFields("spec.clusterIP", "spec.type")
			d.resetStatus = func() any { return object{"loadBalancer": object{}} }
		}),
		builtin("", "v1", "Node", "nodes", false, func(d *definition) {
			d.ShortNames, d.NoStatus = []string{"no"}, false
			d.fields = selectFields("spec.unschedulable=false")
		}),
		builtin("", "v1", "Event", "events", true, shapeEvent),
		builtin("", "v1", "ServiceAccount", "serviceaccounts", true, func(d *definition) {
			d.ShortNames, d.unconditional, d.returnsDeleted = []string{"sa"}, false, true
		}),
		builtin("apps", "v1", "Deployment", "deployments", true, workload("deploy")),
		builtin("apps", "v1", "ReplicaSet", "replicasets", true, func(d *definition) {
			workload("rs")(d)
			d.fields = selectFields("status.replicas=0")
		}),
		builtin("apps", "v1", "StatefulSet", "statefulsets", true, workload("sts")),
		builtin("apps", "v1", "DaemonSet", "daemonsets", true, func(d *definition) {
			workload("ds")(d)
			d.scale = false
		}),
		builtin("batch", "v1", "Job", "jobs", true, func(d *definition) {
			workload("")(d)
			d.scale = false
			d.fields = selectFields("status.successful=0")
		}),
		builtin("coordination.k8s.io", "v1", "Lease", "leases", true, func(d *definition) {
			d.unconditional, d.createOnUpdate = false, true
		}),
		builtin("events.k8s.io", "v1", "Event", "events", true, func(d *definition) {
			d.ShortNames, d.createOnUpdate = []string{"ev"}, true
			d.fields = selectFields("regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
				"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type")
		}),
		builtin(crdGroup, "v1", "CustomResourceDefinition", "customresourcedefinitions", false, func(d *definition) {
			d.ShortNames, d.Categories = []string{"crd", "crds"}, []string{"api-extensions"}
			d.NoStatus, d.generation, d.unconditional = false, true, false
		}),
	}
}

func short(names ...string) func(*definition) {
	return func(d *definition) { d.ShortNames = names }
}

func workload(shortName string) func(*definition) {
	return func(d *definition) {
		if shortName != "" {
			d.ShortNames = []string{shortName}
		}
		d.Categories = []string{"all"}
		d.NoStatus, d.generation, d.scale = false, true, true
		d.resetStatus = func() any { return object{} }
	}
}

func shapeNamespace(d *definition) {
	d.ShortNames, d.NoStatus, d.returnsDeleted = []string{"ns"}, false, true
	d.fields = selectFields("status.phase")
	d.resetStatus = func() any { return object{"phase": "Active"} }
	d.prepare = func(tree object) {
		meta := metadataOf(tree)
		labels, ok := meta["labels"].(object)
		if !ok {
			labels = object{}
			meta["labels"] = labels
		}
		labels["kubernetes.io/metadata.name"] = stringAt(meta, "name")
		tree["spec"] = object{"finalizers": []any{"kubernetes"}}
	}
}

func shapePod(d *definition) {
	d.ShortNames, d.Categories = []string{"po"}, []string{"all"}
	d.NoStatus, d.generation, d.returnsDeleted, d.graceful = false, true, true, true
	d.fields = selectFields("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork=false", "status.phase", "status.podIP", "status.nominatedNodeName")
	d.resetStatus = func() any { return object{"phase": "Pending"} }
}

func shapeEvent(d *definition) {
	d.ShortNames, d.createOnUpdate = []string{"ev"}, true
	plain := selectFields("involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
		"involvedObject.fieldPath", "reason", "reportingComponent", "type")
	d.fields = func(tree object) []fieldValue {
		source := valueAt(tree, []string{"source", "component"})
		if source == "" {
			source = valueAt(tree, []string{"reportingComponent"})
		}
		return append(plain(tree), fieldValue{name: "source", value: source})
	}
}

func setDefault(tree object, name string, value any) {
	if _, ok := tree[name]; !ok {
		tree[name] = value
	}
}
