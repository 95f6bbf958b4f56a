package api

import "k8s.io/apimachinery/pkg/util/resourceversion"

// CompareVersions orders two resource versions. The result is negative if a is older than b, zero if they are equal,
// and positive if a is newer. ok is false if the versions differ and one of them is not a decimal number without
// leading zeros: such versions have no order. KEP-5504 defines the order for kube-apiserver; an aggregated server may
// use any string.
func CompareVersions(a, b string) (order int, ok bool) {
	if a == b {
		return 0, true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// SameVersion reports whether two objects have the same UID and the same resource version. It returns false if a UID or
// a version is empty.
func SameVersion(a, b Object) bool {
	return a.GetUID() != "" && a.GetUID() == b.GetUID() &&
		a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}
