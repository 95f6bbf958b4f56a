// Package fieldmanager records in metadata.managedFields who set which field of an object, and applies configurations
// (server-side apply, KEP-555). It uses the package managedfields of apimachinery, as kube-apiserver does.
//
//	managers := fieldmanager.Untyped(fieldmanager.Kind{Group: "example.com", Kind: "Mill"})
//	tree, err := managers.Applied(registry.Manager{Name: "me", Served: "v1"}, live, configuration, false)
//
// # Promises
//
//  1. A resource without types has typed metadata: two managers can own one finalizer each. Everything else has deduced
//     types, as where a custom resource keeps unknown fields: every list has one owner.
//  2. A write that changes nothing keeps all timestamps.
//
// # Concurrency
//
// Managers may be used by several goroutines. The first use of a version and a subresource builds its field manager;
// others wait for it.
package fieldmanager
