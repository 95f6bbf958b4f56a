package api

import "k8s.io/apimachinery/pkg/util/resourceversion"

// CompareVersions orders two resource versions: negative when a is older than b, zero when they are equal, positive
// when a is newer. ok is false when they differ and either is not a decimal number without leading zeros, for then
// they have no order (KEP-5504 gives one to the versions of kube-apiserver; an aggregated server may use any string).
func CompareVersions(a, b string) (order int, ok bool) {
	if a == b {
		return 0, true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// SameVersion tells whether two objects are the same version of the same incarnation: their UIDs and versions are
// equal and not empty. An object of which either is empty is the same as nothing.
func SameVersion(a, b Object) bool {
	return a.GetUID() != "" && a.GetUID() == b.GetUID() &&
		a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}
