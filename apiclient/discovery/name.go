package discovery

import (
	"fmt"
	"slices"
	"strings"
)

// name is what somebody asked for: "pods", "deployments.apps", "deployments.v1.apps", in lower case. Without a group
// every group is meant, and without a version every version.
type name struct{ resource, version, group string }

// readings are the ways to read a name. "a.b.c" is resource a of group b.c, or of version b in group c if b looks like a
// version; the latter is tried first, as kubectl does.
func readings(s string) ([]name, error) {
	resource, rest, dotted := strings.Cut(strings.ToLower(s), ".")
	if resource == "" || dotted && rest == "" || strings.ContainsAny(s, "/% ") {
		return nil, fmt.Errorf("discovery: %q is not the name of a resource, such as pods, deployments.apps or deployments.v1.apps", s)
	}
	if !dotted {
		return []name{{resource: resource}}, nil
	}
	inGroup := name{resource: resource, group: rest}
	version, group, _ := strings.Cut(rest, ".")
	if !isVersion(version) {
		return []name{inGroup}, nil
	}
	return []name{{resource: resource, version: version, group: group}, inGroup}, nil
}

// isVersion tells whether s looks like v1, v1beta1 or v2alpha3.
func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' || s[1] < '1' || s[1] > '9' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func (n name) inGroup(r *Resource) bool {
	return (n.group == "" || n.group == r.Group) && (n.version == "" || n.version == r.Version)
}

// inGroupThatBegins lets "storageclass.storage" stand for storage.k8s.io, as kubectl does where no version is given.
func (n name) inGroupThatBegins(r *Resource) bool {
	return n.group != "" && n.version == "" && strings.HasPrefix(r.Group, n.group)
}

// isName compares with the plural name, and with the singular one, which is the kind in lower case where a server does
// not say.
func (n name) isName(r *Resource) bool {
	return n.resource == strings.ToLower(r.Plural) || n.resource == strings.ToLower(r.Singular) ||
		r.Singular == "" && n.isKind(r)
}

func (n name) isShortName(r *Resource) bool { return slices.Contains(r.ShortNames, n.resource) }

func (n name) isKind(r *Resource) bool { return strings.EqualFold(n.resource, r.Kind) }
