package registry

import (
	"cmp"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

// builtin builds an entry of the table below.
func builtin(group, version, kind, plural string, namespaced bool, shape func(*Definition)) *Definition {
	d := &Definition{
		Settings: Settings{Resource: api.Resource{
			Group: group, Version: version, Kind: kind, Plural: plural, Namespaced: namespaced,
		}},
		Unconditional: true,
	}
	d.NoStatus = true
	if shape != nil {
		shape(d)
	}
	d.Subs = d.builtinSubresources()
	return d
}

// Builtins are the resources that every server has. Their properties follow the strategies of kube-apiserver 1.37, with
// one difference: the Events of the two groups are separate collections, so an Event of one group is not visible in the
// other.
func Builtins() []*Definition {
	return []*Definition{
		builtin("", "v1", "Namespace", "namespaces", false, shapeNamespace),
		builtin("", "v1", "Pod", "pods", true, shapePod),
		builtin("", "v1", "ConfigMap", "configmaps", true, short("cm")),
		builtin("", "v1", "Secret", "secrets", true, func(d *Definition) {
			d.Fields = selectFields("type")
			d.Default = func(tree object.Tree) { object.SetDefault(tree, "type", "Opaque") }
		}),
		builtin("", "v1", "Service", "services", true, func(d *Definition) {
			d.ShortNames, d.Categories = []string{"svc"}, []string{"all"}
			d.NoStatus, d.CreateOnUpdate, d.ReturnsDeleted = false, true, true
			d.Fields = selectFields("spec.clusterIP", "spec.type")
			d.ResetStatus = func() any { return object.Tree{"loadBalancer": object.Tree{}} }
		}),
		builtin("", "v1", "Node", "nodes", false, func(d *Definition) {
			d.ShortNames, d.NoStatus = []string{"no"}, false
			d.Fields = selectFields("spec.unschedulable=false")
		}),
		builtin("", "v1", "Event", "events", true, shapeEvent),
		builtin("", "v1", "ServiceAccount", "serviceaccounts", true, func(d *Definition) {
			d.ShortNames, d.Unconditional, d.ReturnsDeleted = []string{"sa"}, false, true
		}),
		builtin("apps", "v1", "Deployment", "deployments", true, func(d *Definition) {
			workload("deploy")(d)
			d.Annotated, d.StatusKeeps = true, []string{"labels"}
		}),
		builtin("apps", "v1", "ReplicaSet", "replicasets", true, func(d *Definition) {
			workload("rs")(d)
			d.Fields = selectFields("status.replicas=0")
		}),
		builtin("apps", "v1", "StatefulSet", "statefulsets", true, workload("sts")),
		builtin("apps", "v1", "DaemonSet", "daemonsets", true, func(d *Definition) {
			workload("ds")(d)
			d.scale = false
		}),
		builtin("batch", "v1", "Job", "jobs", true, func(d *Definition) {
			workload("")(d)
			d.scale = false
			// The selector has another name than the field.
			d.Fields = func(tree object.Tree) []FieldValue {
				return []FieldValue{{"status.successful", cmp.Or(object.TextAt(tree, "status", "succeeded"), "0")}}
			}
		}),
		builtin("coordination.k8s.io", "v1", "Lease", "leases", true, func(d *Definition) {
			d.Unconditional, d.CreateOnUpdate = false, true
		}),
		builtin("events.k8s.io", "v1", "Event", "events", true, func(d *Definition) {
			d.ShortNames, d.CreateOnUpdate = []string{"ev"}, true
			d.Fields = selectFields("regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
				"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type")
		}),
		builtin(crdGroup, "v1", "CustomResourceDefinition", "customresourcedefinitions", false, func(d *Definition) {
			d.ShortNames, d.Categories = []string{"crd", "crds"}, []string{"api-extensions"}
			d.NoStatus, d.Generation, d.Unconditional = false, true, false
		}),
	}
}

func short(names ...string) func(*Definition) {
	return func(d *Definition) { d.ShortNames = names }
}

func workload(shortName string) func(*Definition) {
	return func(d *Definition) {
		if shortName != "" {
			d.ShortNames = []string{shortName}
		}
		d.Categories = []string{"all"}
		d.NoStatus, d.Generation, d.scale = false, true, true
		d.ResetStatus = func() any { return object.Tree{} }
	}
}

func shapeNamespace(d *Definition) {
	d.ShortNames, d.NoStatus, d.ReturnsDeleted = []string{"ns"}, false, true
	d.Fields = selectFields("status.phase")
	d.ResetStatus = func() any { return object.Tree{"phase": "Active"} }
	d.Default = func(tree object.Tree) {
		if meta := object.Metadata(tree); object.StringAt(meta, "name") != "" {
			LabelNamespace(meta)
		}
	}
	d.Prepare = func(tree object.Tree) {
		LabelNamespace(object.Metadata(tree)) // of a generated name
		tree["spec"] = object.Tree{"finalizers": []any{"kubernetes"}}
	}
}

// LabelNamespace sets the label that every namespace has.
func LabelNamespace(meta object.Tree) {
	labels, ok := meta["labels"].(object.Tree)
	if !ok {
		labels = object.Tree{}
		meta["labels"] = labels
	}
	labels["kubernetes.io/metadata.name"] = object.StringAt(meta, "name")
}

func shapePod(d *Definition) {
	d.ShortNames, d.Categories = []string{"po"}, []string{"all"}
	d.NoStatus, d.Generation, d.ReturnsDeleted, d.Graceful = false, true, true, true
	d.Fields = selectFields("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork=false", "status.phase", "status.podIP", "status.nominatedNodeName")
	d.ResetStatus = func() any { return object.Tree{"phase": "Pending"} }
	d.StatusKeeps = []string{"ownerReferences"}
}

func shapeEvent(d *Definition) {
	d.ShortNames, d.CreateOnUpdate = []string{"ev"}, true
	plain := selectFields("involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
		"involvedObject.fieldPath", "reason", "reportingComponent", "type")
	d.Fields = func(tree object.Tree) []FieldValue {
		source := object.TextAt(tree, "source", "component")
		if source == "" {
			source = object.TextAt(tree, "reportingComponent")
		}
		return append(plain(tree), FieldValue{Name: "source", Value: source})
	}
}
