package bootstrap

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/internal/object"
)

// updated returns the entry of a manager in managedFields.
func updated(manager string, gv schema.GroupVersion, fields object.Tree) object.Tree {
	return object.Tree{
		"manager": manager, "operation": "Update", "apiVersion": gv.String(), "fieldsType": "FieldsV1", "fieldsV1": fields,
	}
}

// applied returns the entry of a manager that has applied a condition to the status of an object.
func applied(manager string, gv schema.GroupVersion, condition object.Tree) object.Tree {
	fields := object.Tree{".": object.Tree{}, "f:lastTransitionTime": object.Tree{}}
	for name := range condition {
		fields["f:"+name] = object.Tree{}
	}
	key := `k:{"type":"` + object.StringAt(condition, "type") + `"}`
	return object.Tree{
		"manager": manager, "operation": "Apply", "apiVersion": gv.String(), "fieldsType": "FieldsV1",
		"fieldsV1":    object.Tree{"f:status": object.Tree{"f:conditions": object.Tree{key: fields}}},
		"subresource": "status",
	}
}

// required are members that every object of their type has, so a manager does not own them themselves.
var required = map[string]bool{"spec": true, "priorityLevelConfiguration": true}

// fieldsOf returns the fields of a new object that its creator owns. It knows the types of this package: all lists are
// atomic, and so are references to roles. The field manager of the server would build all types, which takes 20 ms in
// the first server of a process.
func fieldsOf(tree object.Tree) object.Tree {
	out := object.Tree{}
	for name, value := range tree {
		switch v := value.(type) {
		case object.Tree:
			switch name {
			case "metadata":
				if set := fieldsOf(object.Tree{"labels": v["labels"], "annotations": v["annotations"]}); len(set) > 0 {
					out["f:metadata"] = set
				}
			case "status":
			case "roleRef":
				out["f:roleRef"] = object.Tree{}
			default:
				members := fieldsOf(v)
				if !required[name] {
					members["."] = object.Tree{}
				}
				out["f:"+name] = members
			}
		case nil:
		default:
			out["f:"+name] = object.Tree{}
		}
	}
	return out
}

// serviceFields are the fields of the Service kubernetes.
var serviceFields = object.Tree{
	"f:metadata": object.Tree{"f:labels": object.Tree{
		".": object.Tree{}, "f:component": object.Tree{}, "f:provider": object.Tree{},
	}},
	"f:spec": object.Tree{
		"f:clusterIP": object.Tree{}, "f:internalTrafficPolicy": object.Tree{}, "f:ipFamilyPolicy": object.Tree{},
		"f:ports": object.Tree{".": object.Tree{}, `k:{"port":443,"protocol":"TCP"}`: object.Tree{
			".": object.Tree{}, "f:name": object.Tree{}, "f:port": object.Tree{}, "f:protocol": object.Tree{}, "f:targetPort": object.Tree{},
		}},
		"f:sessionAffinity": object.Tree{}, "f:type": object.Tree{},
	},
}
