package namespaces

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient/discovery"
)

// fine are the conditions of a deletion without problems, in the order in which they are added.
var fine = []corev1.NamespaceCondition{
	{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
	{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
	{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
	{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
	{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
}

// writeConditions sets the conditions of a status, and reports whether one has changed.
func (c *content) writeConditions(status *corev1.NamespaceStatus, now metav1.Time) bool {
	changed := false
	for _, want := range fine {
		want.Status = corev1.ConditionFalse
		if reason, message := c.problem(want.Type); reason != "" {
			want.Status, want.Reason, want.Message = corev1.ConditionTrue, reason, message
		}
		want.LastTransitionTime = now
		at := slices.IndexFunc(status.Conditions, func(have corev1.NamespaceCondition) bool { return have.Type == want.Type })
		if at < 0 {
			status.Conditions = append(status.Conditions, want)
			changed = true
			continue
		}
		have := &status.Conditions[at]
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		if *have != want {
			*have, changed = want, true
		}
	}
	return changed
}

// problem returns the reason and the message of a condition that is true, or nothing.
func (c *content) problem(kind corev1.NamespaceConditionType) (reason, message string) {
	switch {
	case kind == corev1.NamespaceDeletionDiscoveryFailure && c.undiscover != nil:
		return "DiscoveryFailed", discoveryProblem(c.undiscover)
	case kind == corev1.NamespaceDeletionContentFailure && len(c.deletions) > 0:
		lines := make([]string, len(c.deletions))
		for i, err := range c.deletions {
			lines[i] = text(err)
		}
		slices.Sort(lines)
		return "ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(lines), strings.Join(lines, ", "))
	case kind == corev1.NamespaceContentRemaining && len(c.remaining) > 0:
		var lines []string
		for r, n := range c.remaining {
			lines = append(lines, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, n))
		}
		slices.Sort(lines)
		return "SomeResourcesRemain", "Some resources are remaining: " + strings.Join(lines, ", ")
	case kind == corev1.NamespaceFinalizersRemaining && len(c.finalizers) > 0:
		var lines []string
		for f, n := range c.finalizers {
			lines = append(lines, fmt.Sprintf("%s in %d resource instances", f, n))
		}
		slices.Sort(lines)
		return "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: " + strings.Join(lines, ", ")
	}
	return "", ""
}

// discoveryProblem describes documents that could not be read.
func discoveryProblem(err error) string {
	var incomplete *discovery.IncompleteError
	if !errors.As(err, &incomplete) {
		return text(err)
	}
	lines := make([]string, len(incomplete.Failed))
	for i, f := range incomplete.Failed {
		lines[i] = f.GroupVersion.String() + ": " + text(f.Err)
	}
	slices.Sort(lines)
	return fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s",
		len(lines), strings.Join(lines, ", "))
}
