package api

// Scopes says which scopes a state of a collection was read in, and which version each of them had reached. A scope is
// one list and watch stream. A Scopes never changes.
type Scopes interface {
	// Version returns the oldest version among the scopes that can have objects of a namespace. It is empty if there is
	// no such scope, if one of them has not listed yet, or if their versions have no order. The namespace of
	// cluster-scoped objects is empty.
	Version(namespace string) string
	// Listed reports whether there are scopes that can have objects of a namespace, and all of them have their first
	// list.
	Listed(namespace string) bool
	// Selectors returns the selector of each scope that can have objects of a namespace. The caller must not change the
	// slice.
	Selectors(namespace string) []Selector
	// Oldest returns the oldest version of all scopes. It is empty in the same cases as Version. It takes time in
	// proportion to the number of scopes.
	Oldest() string
}
