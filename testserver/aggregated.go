package testserver

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// aggregatedType is the media type of aggregated discovery. Kubernetes 1.35 removed v2beta1.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveAggregated answers /api or /apis with the whole document, or with 304 if the client already has it.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request, root string) {
	body, err := json.Marshal(registry.AggregatedList(s.store.Definitions(), root))
	if err != nil {
		fail(w, fmt.Errorf("testserver: encode a discovery document: %w", err))
		return
	}
	tag := fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(body)))
	w.Header().Set("ETag", tag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", aggregatedType)
	_, _ = w.Write(append(body, '\n')) // an error means that the client has gone
}
