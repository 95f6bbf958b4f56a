package kubeconfig_test

import (
	"errors"
	"net/http"
)

// roundTripper is a transport, which a file cannot express.
type roundTripper struct{}

func (roundTripper) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("never called")
}
