// Package owner writes owner references, and decides which of the selected objects an owner adopts, keeps and releases.
// A reconciler uses it: SetController marks the objects that it creates, and a Claimer sorts the objects that it finds.
// controller.Owns finds the owner of a marked object. This package sends no requests; the caller passes a function that
// sends a patch.
//
// # Example
//
//	if err := owner.SetController(web, webs, pod); err != nil { // before the pod is created
//		return err
//	}
//	claimer := owner.Claimer[*Web, *corev1.Pod]{Owner: web, Resource: webs, Selects: matches, Live: live, Patch: patch}
//	pods, err := claimer.Claim(ctx, candidates)
//
// See ExampleSetController and ExampleClaimer.
//
// # Promises
//
//  1. An object has at most one controller. SetController returns an *AlreadyOwnedError that names another one.
//  2. A reference that cannot work is an error: across namespaces, or from a cluster-scoped object to a namespaced
//     owner.
//  3. Setting a reference again changes nothing. A newer apiVersion of the same owner replaces the older one.
//  4. Claim adopts, keeps, releases and ignores objects by the table in its comment. The failure of one object does not
//     affect the others.
//  5. Before the first adoption, the owner is read from the server and must be alive. It is read once for all objects.
//  6. An owner has one reference in an object. Adoption changes an existing reference instead of adding one.
//  7. A patch names the UID and the version of its object. It changes nothing if the object was replaced or changed
//     meanwhile.
//
// # Concurrency
//
// The functions change only the objects that they receive. Never pass an object from a cache. A Claimer serves one
// reconcile, on one goroutine. Claim blocks while the functions in its fields run.
//
// # Differences from client-go
//
// client-go has nothing like this package. SetController corresponds to controllerutil.SetControllerReference of
// controller-runtime, which finds the owner's kind in a scheme; here the caller passes the owner's resource. Claimer
// corresponds to the controller reference managers of kube-controller-manager, and serves all types. Its patches are
// merge patches, which custom resources support too. They carry the version, because a merge patch replaces the whole
// list of references.
package owner
