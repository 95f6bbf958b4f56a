package documents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/leatproject/leat/testserver/internal/wire"
)

// The paths of OpenID Connect Discovery 1.0.
const (
	configurationPath = "/.well-known/openid-configuration"
	keysPath          = "/openid/v1/jwks"
	keysType          = "application/jwk-set+json"
)

// configuration describes the issuer of the tokens of service accounts.
type configuration struct {
	Issuer     string   `json:"issuer"`
	Keys       string   `json:"jwks_uri"`
	Responses  []string `json:"response_types_supported"`
	Subjects   []string `json:"subject_types_supported"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

func (d *Documents) serveConfiguration(w http.ResponseWriter, r *http.Request) {
	keys, err := d.keys.KeySet()
	var set struct {
		Keys []struct {
			Algorithm string `json:"alg"`
		} `json:"keys"`
	}
	if err == nil {
		err = json.Unmarshal(keys, &set)
	}
	if err != nil {
		refuse(w, fmt.Errorf("testserver: the keys of service accounts: %w", err))
		return
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	c := configuration{
		Issuer: d.keys.Issuer(), Keys: scheme + "://" + r.Host + wire.Prefix(r) + keysPath,
		Responses: []string{"id_token"}, Subjects: []string{"public"},
	}
	for _, k := range set.Keys {
		c.Algorithms = append(c.Algorithms, k.Algorithm)
	}
	slices.Sort(c.Algorithms)
	c.Algorithms = slices.Compact(c.Algorithms)
	encoded, _ := json.Marshal(c) // only strings
	servePublic(w, r, wire.JSON, encoded)
}

func (d *Documents) serveKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := d.keys.KeySet()
	if err != nil {
		refuse(w, fmt.Errorf("testserver: the keys of service accounts: %w", err))
		return
	}
	servePublic(w, r, keysType, keys)
}

// servePublic answers with a document that everybody may cache.
func servePublic(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) {
	if r.Method != http.MethodGet {
		refuse(w, wire.NotAllowed())
		return
	}
	if err := (wire.Offer{Types: []string{mediaType}}).CheckRoute(r.Header.Get("Accept")); err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	wire.Write(w, mediaType, http.StatusOK, body)
}

func refuse(w http.ResponseWriter, err error) { wire.WriteStatus(w, wire.StatusOf(err)) }
