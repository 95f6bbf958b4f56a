package clientgo

import (
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/internal/maskguard"
)

// RefuseMasked makes the clients of a rest.Config refuse objects of an apiclient.MaskedClient, because an update with
// such an object would delete the fields that it lacks. Creates, updates and applies fail with a *codec.MaskedError and
// are not sent. Patch of a clientset is not refused: it sends the bytes of the caller, which name what they change.
// Call RefuseMasked before a client is made from the config.
func RefuseMasked(config *rest.Config) { config.Wrap(maskguard.Wrap) }
