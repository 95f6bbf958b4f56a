// Package admission admits writes as kube-apiserver does: with its own plugins for pods, claims, limits and quotas,
// with webhooks, and with policies in CEL. The plugins are those of Kubernetes, used as a library.
//
//	chain, err := admission.New(factory, admission.Options{Authorizer: policy})
//	server := testserver.NewExtended(options, extension.Extension{Connect: factory.Connect, Admission: chain})
//
// The plugins that kube-apiserver 1.37 enables by default are on, except those whose effect only a real cluster needs:
// NamespaceLifecycle, which package namespaces has; NodeDeclaredFeatureValidator, PodGroupProtection,
// PodResizeValidator and PodTopologyLabels, which need kubelets and schedulers; ClusterTrustBundleAttest, whose
// resource is not served by default; and PodSecurity. Options.Disabled turns others off by the name that kube-apiserver
// has for them.
//
// # Promises
//
//  1. A webhook or a policy counts from the moment when the write of its configuration was answered.
//  2. A webhook that does not answer delays only the request that it was called for.
//  3. Concurrent writes do not exceed a quota.
//
// # Concurrency
//
// All methods may be called from any goroutine that does not hold the lock of the store. Only one Run may run at a
// time.
package admission
