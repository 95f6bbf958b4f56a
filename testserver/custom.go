package testserver

import "github.com/leatproject/leat/api"

// Definition is a custom resource that the server serves. It corresponds to a CustomResourceDefinition; Server.Define
// needs no such object.
type Definition struct {
	api.Resource

	// Versions are served besides Resource.Version: the same objects under other apiVersions.
	Versions []string
	// Singular is the singular name. Empty means the kind in lower case.
	Singular   string
	ShortNames []string
	Categories []string
	// NoStatus omits the status subresource. status is then a normal field.
	NoStatus bool
	// SelectableFields are paths such as "spec.host" that field selectors may use, besides metadata.name and
	// metadata.namespace.
	SelectableFields []string
}
