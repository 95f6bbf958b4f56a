package identity

import (
	"fmt"

	"k8s.io/kubernetes/pkg/serviceaccount"
)

// Issuer returns the issuer of the tokens of service accounts.
func (i *Identity) Issuer() string { return i.options.Issuer }

// KeySet returns the public keys of the tokens of service accounts as a JSON Web Key Set.
func (i *Identity) KeySet() ([]byte, error) {
	// The provider also wants the address of the keys, for a document that is not used here.
	provider, err := serviceaccount.NewOpenIDMetadataProvider(i.options.Issuer, "", "localhost:443", i.keys)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	set, _ := provider.GetKeysetJSON()
	return set, nil
}
