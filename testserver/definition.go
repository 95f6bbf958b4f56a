package testserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leatproject/leat/api"
)

// Definition is a custom resource that the server serves. It corresponds to a CustomResourceDefinition; Server.Define
// needs no such object.
type Definition struct {
	api.Resource

	// Versions are served besides Resource.Version: the same objects under other apiVersions.
	Versions []string
	// Singular is the singular name. Empty means the kind in lower case.
	Singular   string
	ShortNames []string
	Categories []string
	// NoStatus omits the status subresource. status is then a normal field.
	NoStatus bool
	// SelectableFields are paths such as "spec.host" that field selectors may use, besides metadata.name and
	// metadata.namespace.
	SelectableFields []string
}

// definition is a Definition with the properties in which built-in resources differ from custom ones.
type definition struct {
	Definition

	crd            bool // from a CustomResourceDefinition
	custom         bool // items of lists contain kind and apiVersion; an update needs a version
	generation     bool // metadata.generation counts changes outside of metadata and status
	annotated      bool // generation also counts changes of annotations (deployments)
	unconditional  bool // an update needs no version
	createOnUpdate bool // an update of a missing object creates it
	returnsDeleted bool // the answer to a deletion is the object instead of a Status
	graceful       bool // a deletion waits for the kubelet (pods)
	scale          bool // has a scale subresource
	fields         func(object) []fieldValue
	prepare        func(object) // sets defaults in a new object
	resetStatus    func() any   // returns the status of a new object; nil means no status
	statusKeeps    []string     // metadata that an update of the status does not change; custom resources keep all
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

// in returns the resource in the given API version.
func (d *definition) in(version string) api.Resource {
	r := d.Resource
	r.Version = version
	return r
}

// selectable reports whether field selectors may use the field.
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

// customDefinition checks d and returns it with the properties of a custom resource.
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

// selectFields returns a function that reads the given paths. A missing value is empty, or the text after "=" in the
// path.
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

// builtin builds an entry of the table below.
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

// builtins are the resources that every server has. Their properties follow the strategies of kube-apiserver 1.36, with
// one difference: the Events of the two groups are separate collections, so an Event of one group is not visible in the
// other.
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
		builtin("apps", "v1", "Deployment", "deployments", true, func(d *definition) {
			workload("deploy")(d)
			d.annotated, d.statusKeeps = true, []string{"labels"}
		}),
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
	d.statusKeeps = []string{"ownerReferences"}
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
