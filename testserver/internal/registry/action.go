package registry

import (
	"context"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

// Action answers the creation of an object that is not stored, such as a review of access or a request for a token. It
// returns the answer in the version of the request, with kind and apiVersion.
type Action func(context.Context, Act) (object.Tree, error)

// Act is a creation that an Action answers.
type Act struct {
	Operation
	Key      api.Key
	Tree     object.Tree // the body, with kind, apiVersion and defaults; the action owns it
	Validate func() error
}
