package documents

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// Keys are the public keys of the tokens of service accounts.
type Keys interface {
	// Issuer returns the issuer of the tokens.
	Issuer() string
	// KeySet returns the keys as a JSON Web Key Set (RFC 7517).
	KeySet() ([]byte, error)
}

// Documents are the documents of one server.
type Documents struct {
	resources func() []*registry.Definition
	keys      Keys
}

// New returns the documents of a server with the resources that the function returns.
func New(resources func() []*registry.Definition, k Keys) *Documents {
	return &Documents{resources: resources, keys: k}
}

// Serve answers a request for a document. It returns false for other paths.
func (d *Documents) Serve(w http.ResponseWriter, r *http.Request) bool {
	switch path := r.URL.Path; strings.TrimSuffix(path, "/") {
	case "", "/index.html":
		if path == "/index.html/" {
			return false
		}
		encoded, _ := json.Marshal(metav1.RootPaths{Paths: d.paths()}) // only strings
		wire.WriteJSON(w, http.StatusOK, encoded)
		return true
	case configurationPath:
		d.serveConfiguration(w, r)
		return true
	case keysPath:
		d.serveKeys(w, r)
		return true
	default:
		return serveHealth(w, r)
	}
}

// paths returns the paths of the index, in their order.
func (d *Documents) paths() []string {
	out := []string{
		configurationPath, "/api", "/api/v1", "/apis", "/apis/", "/flagz", "/metrics", "/metrics/slis", "/openapi/v2",
		"/openapi/v3", "/openapi/v3/", keysPath, "/statusz", "/version",
	}
	all := d.resources()
	for _, group := range registry.Groups(all) {
		out = append(out, "/apis/"+group)
		for _, version := range registry.VersionsOf(all, group) {
			out = append(out, "/apis/"+group+"/"+version)
		}
	}
	for root, checks := range checks {
		out = append(out, root)
		for _, name := range checks {
			out = append(out, root+"/"+name)
		}
	}
	slices.Sort(out)
	return out
}
