package discovery

import (
	"fmt"
	"strings"
)

// name is what somebody asked for: "pods", "deployments.apps", "deployments.v1.apps". Without a dot every group is meant.
type name struct {
	plural, version, group string
	anyGroup               bool
}

// readings are the ways to read a name. "a.b.c" is plural a of group b.c, or of version b in group c if b looks like a
// version; the latter is tried first, as kubectl does.
func readings(s string) ([]name, error) {
	plural, rest, dotted := strings.Cut(s, ".")
	if plural == "" || dotted && rest == "" || strings.ContainsAny(s, "/% ") {
		return nil, fmt.Errorf("discovery: %q is not the name of a resource, such as pods, deployments.apps or deployments.v1.apps", s)
	}
	if !dotted {
		return []name{{plural: s, anyGroup: true}}, nil
	}
	inGroup := name{plural: plural, group: rest}
	version, group, _ := strings.Cut(rest, ".")
	if !isVersion(version) {
		return []name{inGroup}, nil
	}
	return []name{{plural: plural, version: version, group: group}, inGroup}, nil
}

// isVersion tells whether s looks like v1, v1beta1 or v2alpha3.
func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' || s[1] < '1' || s[1] > '9' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
