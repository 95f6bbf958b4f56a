package definitions

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/testserver/internal/object"
)

// Conditions of a CustomResourceDefinition.
const (
	namesAccepted = string(apiextensionsv1.NamesAccepted)
	established   = string(apiextensionsv1.Established)
	terminating   = string(apiextensionsv1.Terminating)
	approved      = string(apiextensionsv1.KubernetesAPIApprovalPolicyConformant)
)

const (
	reasonPending    = "InstanceDeletionPending"
	reasonInProgress = "InstanceDeletionInProgress"
)

// Settle returns a CustomResourceDefinition as the controllers of kube-apiserver write it next, or nil if nothing is
// left to do. Each call does the work of one write: names are accepted, then the resource is established; a deletion is
// announced, begun, and finished when no objects are left. others are the other definitions of the same group;
// populated says whether objects of the resource exist. Settle changes none of its arguments.
func Settle(crd object.Tree, others []object.Tree, populated bool) object.Tree {
	tree := runtime.DeepCopyJSON(crd)
	object.SetDefault(tree, "status", object.Tree{})
	steps := []func() bool{
		func() bool { return terminate(tree, populated) },
		func() bool { return approve(tree) },
		func() bool { return acceptNames(tree, others) },
		func() bool { return establish(tree) },
	}
	for _, step := range steps {
		if step() {
			return tree
		}
	}
	return nil
}

// terminate does the next step of a deletion.
func terminate(tree object.Tree, populated bool) bool {
	meta := object.Metadata(tree)
	if object.StringAt(meta, "deletionTimestamp") == "" {
		return false
	}
	finalizers := object.SliceAt(meta, "finalizers")
	waits := slices.Contains(finalizers, any(apiextensionsv1.CustomResourceCleanupFinalizer))
	switch now := conditionOf(tree, terminating); {
	case now == nil:
		if !waits {
			meta["finalizers"] = append(slices.Clone(finalizers), apiextensionsv1.CustomResourceCleanupFinalizer)
		}
		return setCondition(tree, terminating, "True", reasonPending,
			"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	case !waits:
		return false
	case now["reason"] == reasonPending:
		return setCondition(tree, terminating, "True", reasonInProgress, "CustomResource deletion is in progress")
	case populated:
		return false
	case isTrue(tree, established):
		setCondition(tree, terminating, "False", "InstanceDeletionCompleted", "removed all instances")
	default:
		setCondition(tree, terminating, "False", "NeverEstablished", "resource was never established")
	}
	object.SetOrDropList(meta, "finalizers", slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool {
		return f == apiextensionsv1.CustomResourceCleanupFinalizer
	}))
	return true
}

// approve records whether a definition in a group of the Kubernetes community has the annotation of its review.
func approve(tree object.Tree) bool {
	if !apihelpers.IsProtectedCommunityGroup(object.StringAt(object.MapAt(tree, "spec"), "group")) {
		return false
	}
	annotations := map[string]string{}
	for name, value := range object.MapAt(object.Metadata(tree), "annotations") {
		annotations[name], _ = value.(string)
	}
	state, message := apihelpers.GetAPIApprovalState(annotations)
	switch state {
	case apihelpers.APIApproved:
		return setCondition(tree, approved, "True", "ApprovedAnnotation", message)
	case apihelpers.APIApprovalBypassed:
		return setCondition(tree, approved, "False", "UnapprovedAnnotation", message)
	case apihelpers.APIApprovalInvalid:
		return setCondition(tree, approved, "False", "InvalidAnnotation", message)
	default:
		return setCondition(tree, approved, "False", "MissingAnnotation", message)
	}
}

// acceptNames accepts the names that no other definition of the group has.
func acceptNames(tree object.Tree, others []object.Tree) bool {
	wanted := object.MapAt(object.MapAt(tree, "spec"), "names")
	status := object.MapAt(tree, "status")
	have := object.MapAt(status, "acceptedNames")
	if reflect.DeepEqual(wanted, have) {
		return false
	}
	resources, kinds := takenNames(others)
	result := object.Tree{}
	object.SetOrDrop(result, "categories", wanted["categories"])
	reason, message := "", ""
	conflict := func(why string, names ...string) {
		reason, message = why, inUse(names)
	}
	for _, n := range []struct {
		field, reason string
		taken         map[string]bool
	}{
		{"plural", "PluralConflict", resources},
		{"singular", "SingularConflict", resources},
		{"shortNames", "ShortNamesConflict", resources},
		{"kind", "KindConflict", kinds},
		{"listKind", "ListKindConflict", kinds},
	} {
		if taken := conflicting(wanted[n.field], have[n.field], n.taken); len(taken) > 0 {
			conflict(n.reason, taken...)
			object.SetOrDrop(result, n.field, have[n.field])
			continue
		}
		object.SetOrDrop(result, n.field, wanted[n.field])
	}
	changed := !reflect.DeepEqual(have, result)
	status["acceptedNames"] = result
	if reason != "" {
		changed = setCondition(tree, namesAccepted, "False", reason, message) || changed
	} else {
		changed = setCondition(tree, namesAccepted, "True", "NoConflicts", "no conflicts found") || changed
	}
	if changed {
		announce(tree)
	}
	return changed
}

// announce says that a definition is not established yet, and why.
func announce(tree object.Tree) {
	switch {
	case isTrue(tree, established):
	case isTrue(tree, namesAccepted):
		setCondition(tree, established, "False", "Installing", "the initial names have been accepted")
	case conditionOf(tree, established) == nil:
		setCondition(tree, established, "False", "NotAccepted", "not all names are accepted")
	}
}

// takenNames returns the accepted names of definitions.
func takenNames(others []object.Tree) (resources, kinds map[string]bool) {
	resources, kinds = map[string]bool{}, map[string]bool{}
	for _, other := range others {
		names := object.MapAt(object.MapAt(other, "status"), "acceptedNames")
		for _, name := range append(object.StringsAt(names, "shortNames"), object.StringAt(names, "plural"), object.StringAt(names, "singular")) {
			resources[name] = true
		}
		kinds[object.StringAt(names, "kind")] = true
		kinds[object.StringAt(names, "listKind")] = true
	}
	return resources, kinds
}

// conflicting returns the new names among wanted that are taken. wanted and have are a name or a list of names.
func conflicting(wanted, have any, taken map[string]bool) []string {
	var out []string
	old := namesOf(have)
	for _, name := range namesOf(wanted) {
		if !slices.Contains(old, name) && taken[name] {
			out = append(out, name)
		}
	}
	return out
}

func namesOf(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		return object.StringsAt(object.Tree{"": v}, "")
	}
	return nil
}

// inUse returns the message about names that are taken.
func inUse(names []string) string {
	var texts []string
	for _, name := range names {
		if text := fmt.Sprintf("%q is already in use", name); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// establish ends the installation of a definition whose names are accepted.
func establish(tree object.Tree) bool {
	if !isTrue(tree, namesAccepted) || isTrue(tree, established) {
		return false
	}
	return setCondition(tree, established, "True", "InitialNamesAccepted", "the initial names have been accepted")
}

func conditionOf(tree object.Tree, kind string) object.Tree {
	return object.Condition(object.MapAt(tree, "status"), kind)
}

func isTrue(tree object.Tree, kind string) bool {
	c := conditionOf(tree, kind)
	return c != nil && c["status"] == "True"
}

// setCondition sets a condition and reports whether it changed. Its time changes with its status.
func setCondition(tree object.Tree, kind, state, reason, message string) bool {
	now := time.Now().UTC().Format(time.RFC3339)
	c := conditionOf(tree, kind)
	if c == nil {
		status := object.MapAt(tree, "status")
		status["conditions"] = append(object.SliceAt(status, "conditions"), object.Tree{
			"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": now,
		})
		return true
	}
	if c["status"] == state && c["reason"] == reason && c["message"] == message {
		return false
	}
	if c["status"] != state {
		c["lastTransitionTime"] = now
	}
	c["status"], c["reason"], c["message"] = state, reason, message
	return true
}
