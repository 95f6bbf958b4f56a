package testserver

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// aggregatedForm are the parameters of the media type of aggregated discovery. Kubernetes 1.35 removed v2beta1.
const aggregatedForm = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveAggregated answers /api or /apis with the whole document, or with 304 if the client already has it.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request, root, mediaType string) {
	body, err := json.Marshal(registry.AggregatedList(s.store.Definitions(), s.remoteGroups(), root))
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
	if body, err = wire.FromJSON(mediaType, append(body, '\n')); err != nil {
		fail(w, fmt.Errorf("testserver: encode a discovery document: %w", err))
		return
	}
	wire.Write(w, mediaType+aggregatedForm, http.StatusOK, body)
}
