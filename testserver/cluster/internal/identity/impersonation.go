package identity

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// newImpersonation returns the filter of kube-apiserver. It calls accepted with the new user, or writes a Status.
func newImpersonation(by authorizer.Authorizer) http.Handler {
	return impersonation.WithConstrainedImpersonation(http.HandlerFunc(accepted), by, legacyscheme.Codecs)
}

// outcome is the ResponseWriter of the filter: it keeps the user or the Status.
type outcome struct {
	header http.Header
	code   int
	body   bytes.Buffer
	user   user.Info
}

// Header returns the headers of the answer.
func (o *outcome) Header() http.Header { return o.header }

// WriteHeader keeps the code of the answer.
func (o *outcome) WriteHeader(code int) { o.code = code }

// Write keeps the body of the answer.
func (o *outcome) Write(b []byte) (int, error) { return o.body.Write(b) }

func accepted(w http.ResponseWriter, r *http.Request) {
	o := w.(*outcome)
	o.user, _ = request.UserFrom(r.Context())
}

var requestInfo = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// impersonated returns who a request wants to be, if its sender may impersonate them.
func (i *Identity) impersonated(r *http.Request, sender user.Info) (registry.User, error) {
	if !impersonates(r.Header) {
		return userOf(sender), nil
	}
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return registry.User{}, apierrors.NewBadRequest(err.Error())
	}
	filtered := r.WithContext(request.WithRequestInfo(request.WithUser(r.Context(), sender), info))
	filtered.Header.Set("Accept", runtime.ContentTypeJSON)
	o := &outcome{header: http.Header{}}
	i.impersonate.ServeHTTP(o, filtered)
	if o.user != nil {
		return userOf(o.user), nil
	}
	status := &metav1.Status{}
	if _, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(o.body.Bytes(), nil, status); err != nil {
		return registry.User{}, fmt.Errorf("identity: impersonation failed with HTTP status %d", o.code)
	}
	return registry.User{}, &apierrors.StatusError{ErrStatus: *status}
}

// impersonates reports whether a request has a header of impersonation.
func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}
