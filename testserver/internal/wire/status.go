package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // an error means that the client has gone
}

// NotAllowed returns the 405 for a method that a resource does not have.
func NotAllowed() error {
	err := Error(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// WriteStatus answers with a Status in JSON.
func WriteStatus(w http.ResponseWriter, status metav1.Status) {
	setRetryAfter(w, status)
	WriteJSON(w, int(status.Code), EncodeStatus(status))
}

func setRetryAfter(w http.ResponseWriter, status metav1.Status) {
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
}

// WriteStatusAs answers with a code and a Status in a media type.
func WriteStatusAs(w http.ResponseWriter, mediaType string, code int, status metav1.Status) {
	setRetryAfter(w, status)
	switch mediaType {
	case Protobuf:
		Write(w, Protobuf, code, protobufStatus(status))
	case YAML:
		body, err := yaml.JSONToYAML(EncodeStatus(status))
		if err != nil {
			panic(fmt.Sprintf("testserver: encode a Status: %v", err))
		}
		Write(w, YAML, code, body)
	default:
		WriteJSON(w, code, EncodeStatus(status))
	}
}

// Write answers with a body of a media type. It reports whether the client is still there. If not, a connection of
// HTTP/2 may read the body after Write has returned.
func Write(w http.ResponseWriter, mediaType string, code int, body []byte) (sent bool) {
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(code)
	_, err := w.Write(body)
	return err == nil
}

// StatusOf returns the Status of an error. An error without one is an internal error.
func StatusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return known.Status()
	}
	return apierrors.NewInternalError(err).Status()
}

// EncodeStatus encodes a Status.
func EncodeStatus(status metav1.Status) []byte {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(fmt.Sprintf("testserver: encode a Status: %v", err))
	}
	return body
}

// Error returns an error for which apimachinery has no constructor.
func Error(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}
