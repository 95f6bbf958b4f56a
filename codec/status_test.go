package codec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec"
)

func TestFailureWithStatus(t *testing.T) {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Message: `pods "a" not found`,
		Reason: metav1.StatusReasonNotFound, Code: 404, Details: &metav1.StatusDetails{Name: "a", Kind: "pods"},
	}
	for media, body := range map[string]string{
		asJSON:     string(mustJSON(status)),
		asProtobuf: string(sealed("v1", "Status", status)),
	} {
		err := codec.Failure{Code: 404, MediaType: media, Body: strings.NewReader(body)}.Error()
		require.True(t, apierrors.IsNotFound(err))
		require.Equal(t, `pods "a" not found`, err.Error())
		require.Equal(t, *status.Details, *err.ErrStatus.Details)
	}
}

func TestFailureWithoutStatus(t *testing.T) {
	for name, test := range map[string]struct {
		code                 int
		media, body, message string
		is                   func(error) bool
	}{
		"proxy":       {502, "text/html", "<html>bad gateway</html>\n", `an error on the server ("<html>bad gateway</html>") has prevented the request from succeeding`, apierrors.IsInternalError},
		"plain":       {403, "text/plain", "go away", "go away", apierrors.IsForbidden},
		"binary":      {500, "application/octet-stream", "\xff\x00", `an error on the server ("unknown") has prevented the request from succeeding`, apierrors.IsInternalError},
		"not JSON":    {503, asJSON, "{", "the server is currently unable to handle the request", apierrors.IsServiceUnavailable},
		"other JSON":  {404, asJSON, `{"kind":"Pod"}`, "the server could not find the requested resource", apierrors.IsNotFound},
		"protobuf":    {401, asProtobuf, "k8s\x00\xff", "the server has asked for the client to provide credentials", apierrors.IsUnauthorized},
		"success":     {409, asJSON, `{"kind":"Status","apiVersion":"v1","status":"Success"}`, "the server reported a conflict", apierrors.IsConflict},
		"nothing":     {429, "", "", "the server has received too many requests and has asked us to try again later", apierrors.IsTooManyRequests},
		"other media": {406, ";;", "x", "the server was unable to respond with a content type that the client supports", apierrors.IsNotAcceptable},
	} {
		err := codec.Failure{Code: test.code, MediaType: test.media, Body: strings.NewReader(test.body)}.Error()
		require.Equal(t, test.message, err.Error(), name)
		require.True(t, test.is(err), name)
		require.EqualValues(t, test.code, err.ErrStatus.Code, name)
	}
}

func TestFailureBodyIsBounded(t *testing.T) {
	endless := &countless{head: []byte("the beginning "), item: []byte("é")}
	var err *apierrors.StatusError
	allocated := allocatedBytes(func() {
		err = codec.Failure{Code: http.StatusForbidden, MediaType: "text/plain", Body: endless}.Error()
	})
	require.Less(t, len(err.Error()), 2100)
	require.Contains(t, err.Error(), "the beginning é")
	require.Less(t, allocated, uint64(1<<20))
	require.Less(t, endless.read, 1<<20)

	inJSON := &countless{head: []byte(`{"kind":"Status","apiVersion":"v1","message":"`), item: []byte("x")}
	err = codec.Failure{Code: http.StatusForbidden, MediaType: asJSON, Body: inJSON}.Error()
	require.True(t, apierrors.IsForbidden(err))
	require.Less(t, inJSON.read, 1<<20)
}

func TestFailureCodeOfTransportFillsGap(t *testing.T) {
	err := codec.Failure{Code: 410, MediaType: asJSON, Body: strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"gone"}`)}.Error()
	require.True(t, apierrors.IsGone(err))
	require.EqualValues(t, 410, err.ErrStatus.Code)
}
