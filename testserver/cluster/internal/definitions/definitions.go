package definitions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Options configure custom resources.
type Options struct {
	// Dial connects to conversion webhooks. Nil: net.Dialer, which does not know services.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Service returns the address (host:port) of a service that a conversion names. Nil: name.namespace.svc:port.
	Service func(namespace, name string, port int32) (string, error)
}

// Definitions makes resources from CustomResourceDefinitions.
type Definitions struct {
	options    Options
	converters func() (*conversion.CRConverterFactory, error)
	transports *transports

	mu    sync.Mutex // guards the field below
	known map[string]known
}

// known is the resource of a definition. It stays the same as long as the definition does, because it contains compiled
// rules.
type known struct {
	of     [sha256.Size]byte // the specification and the names
	result *registry.Definition
}

// New returns Definitions without resources.
func New(o Options) *Definitions {
	used := &transports{}
	return &Definitions{
		options: o, transports: used, known: map[string]known{},
		converters: sync.OnceValues(func() (*conversion.CRConverterFactory, error) {
			return conversion.NewCRConverterFactory(services(o.Service), used.callers(o))
		}),
	}
}

// Fork returns Definitions for a fork of the cluster. Both share the resources that call no webhook.
func (d *Definitions) Fork() *Definitions {
	out := New(d.options)
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, k := range d.known {
		if !k.result.CallsWebhook {
			out.known[name] = k
		}
	}
	return out
}

// errNotServed is the answer of Definition for a definition whose names are not accepted.
var errNotServed = errors.New("definitions: the names of the definition are not accepted")

// Definition returns the resource of a CustomResourceDefinition. It fails if the resource is not served, because the
// names of the definition are not accepted or because no version is served. Equal trees give the same resource.
func (d *Definitions) Definition(crd object.Tree) (*registry.Definition, error) {
	if !served(crd) {
		return nil, errNotServed
	}
	encoded, err := json.Marshal([]any{crd["spec"], object.MapAt(crd, "status")["acceptedNames"]})
	if err != nil {
		return nil, fmt.Errorf("definitions: encode a definition: %w", err)
	}
	name, now := object.StringAt(object.MapAt(crd, "metadata"), "name"), known{of: sha256.Sum256(encoded)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.known[name]; old.of == now.of {
		return old.result, nil
	}
	if now.result, err = d.parse(crd); err != nil {
		return nil, err
	}
	d.known[name] = now
	return now.result, nil
}

// served reports whether kube-apiserver serves a definition.
func served(crd object.Tree) bool { return isTrue(crd, namesAccepted) || isTrue(crd, established) }

// parse makes a resource.
func (d *Definitions) parse(tree object.Tree) (*registry.Definition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, crd); err != nil {
		return nil, fmt.Errorf("definitions: parse a definition: %w", err)
	}
	definitionCodec.scheme.Default(crd)
	schema, err := d.newSchema(crd)
	if err != nil {
		return nil, err
	}
	out, err := registry.Custom(settingsOf(crd))
	if err != nil {
		return nil, fmt.Errorf("definitions: %w", err)
	}
	out.FromCRD = true
	out.CallsWebhook = crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	out.ListKind = crd.Status.AcceptedNames.ListKind
	out.StoredVersion = schema.storage
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			out.Unserved = append(out.Unserved, v.Name)
		}
	}
	out.PerVersion = schema.perVersion()
	out.Schema = schema
	out.Columns = columns(schema.table)
	out.Managers = apply.Custom(crd, schema.Converted) // an owner of unknown fields keeps them, as in kube-apiserver
	out.Scaling = apply.Scaling(crd.Spec.Group, replicasOf(out.PerVersion))
	return out, nil
}

// replicasOf returns the paths of the replicas in the served versions.
func replicasOf(versions map[string]registry.Served) map[string][]string {
	out := map[string][]string{}
	for name, v := range versions {
		out[name] = nil
		if v.Scale != nil {
			out[name] = v.Scale.Replicas
		}
	}
	return out
}

func settingsOf(crd *apiextensionsv1.CustomResourceDefinition) registry.Settings {
	names := crd.Status.AcceptedNames
	out := registry.Settings{
		Resource: api.Resource{
			Group: crd.Spec.Group, Kind: names.Kind, Plural: names.Plural, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		},
		Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
		NoStatus: true,
	}
	var versions []string
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		versions = append(versions, v.Name)
		out.NoStatus = out.NoStatus && (v.Subresources == nil || v.Subresources.Status == nil)
		for _, f := range v.SelectableFields {
			if path := strings.TrimPrefix(f.JSONPath, "."); !slices.Contains(out.SelectableFields, path) {
				out.SelectableFields = append(out.SelectableFields, path)
			}
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return kubeversion.CompareKubeAwareVersionStrings(b, a) })
	if len(versions) > 0 {
		out.Version, out.Versions = versions[0], versions[1:]
	}
	return out
}
