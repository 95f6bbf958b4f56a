package discovery

import (
	"fmt"
	"slices"
	"strings"
)

// name is a name in a look-up, in lower case: "pods", "deployments.apps", "deployments.v1.apps". An empty group or
// version means all of them.
type name struct{ resource, version, group string }

// readings returns the ways to parse a name. As in kubectl, "a.b.c" is resource a in version b of group c, or else in
// group b.c. "a.b" is version b of any group, or else group b.
func readings(s string) ([]name, error) {
	resource, rest, dotted := strings.Cut(strings.ToLower(s), ".")
	if resource == "" || dotted && rest == "" || strings.ContainsAny(s, "/% ") || strings.Contains(s, "..") {
		return nil, fmt.Errorf("discovery: %q is not a valid name of a resource; valid names are pods, deployments.apps and deployments.v1.apps", s)
	}
	inGroup := name{resource: resource, group: rest}
	if !dotted {
		return []name{inGroup}, nil
	}
	version, group, _ := strings.Cut(rest, ".")
	return []name{{resource: resource, version: version, group: group}, inGroup}, nil
}

func (n name) inGroup(r *APIResource) bool {
	return (n.group == "" || n.group == r.Group) && (n.version == "" || n.version == r.Version)
}

// inGroupThatBegins matches "storageclass.storage" with storage.k8s.io, as kubectl does for a name without a version.
func (n name) inGroupThatBegins(r *APIResource) bool {
	return n.version == "" && strings.HasPrefix(r.Group, n.group)
}

func (n name) isName(r *APIResource) bool {
	return n.resource == strings.ToLower(r.Plural) || n.resource == strings.ToLower(r.Singular)
}

func (n name) isShortName(r *APIResource) bool { return slices.Contains(r.ShortNames, n.resource) }

func (n name) isKind(r *APIResource) bool { return strings.EqualFold(n.resource, r.Kind) }
