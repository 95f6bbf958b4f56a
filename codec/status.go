package codec

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

const (
	maxStatusBytes  = 64 << 10 // of an error body: a Status with a long list of causes fits
	maxMessageBytes = 2048     // of a body that is not a Status, and ends up in a message
)

// Failure is an answer whose HTTP status is not one of success.
type Failure struct {
	Code      int       // the HTTP status
	MediaType string    // the Content-Type
	Body      io.Reader // at most 64 KiB are read
	// RetryAfter is what the Retry-After header asked for, in seconds; 0 for nothing.
	RetryAfter int

	// What was asked for, for the message.
	Verb     string // of HTTP: "GET"
	Resource api.Resource
	Name     string
}

// Error reads the Status in the body of a failed answer. Where there is none it makes one of the HTTP status, with the
// first 2048 bytes of a body that is text. It never fails, and blocks as Body does.
// It corresponds to transformResponse of client-go's rest.Request.
func (f Failure) Error() *apierrors.StatusError {
	body, _ := io.ReadAll(io.LimitReader(f.Body, maxStatusBytes)) // what did arrive is better than nothing
	status := f.status(body)
	if status == nil {
		status = f.generic(body)
	}
	if f.RetryAfter > 0 && (status.Details == nil || status.Details.RetryAfterSeconds == 0) {
		if status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		status.Details.RetryAfterSeconds = int32(f.RetryAfter)
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

// status returns the Status in body, or nil if there is none that reports a failure.
func (f Failure) status(body []byte) *metav1.Status {
	var status *metav1.Status
	switch mediaOf(f.MediaType) {
	case mediaJSON:
		s := newScanner(&window{r: bytes.NewReader(body), limit: maxStatusBytes})
		s.held = true
		var o outline
		_, err := s.value(0, &o)
		h := o.head(s.b)
		if err != nil || !isStatusKind(o.stringAt(s.b, h.apiVersion), o.stringAt(s.b, h.kind)) {
			return nil
		}
		status = jsonStatus(o.at(s.b))
	case mediaProtobuf:
		status = statusInside(body)
	}
	if status == nil || status.Status == metav1.StatusSuccess {
		return nil
	}
	if status.Code == 0 {
		status.Code = int32(f.Code)
	}
	return status
}

func (f Failure) generic(body []byte) *metav1.Status {
	message := "unknown"
	if strings.HasPrefix(f.MediaType, "text/") || mediaOf(f.MediaType) == mediaJSON {
		message = excerpt(body)
	}
	err := apierrors.NewGenericServerResponse(f.Code, f.Verb, f.Resource.GroupResource(), f.Name, message, f.RetryAfter, true)
	return &err.ErrStatus
}

// excerpt is the beginning of what a server said, fit for a message.
func excerpt(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) > maxMessageBytes {
		return strings.ToValidUTF8(string(body[:maxMessageBytes]), "") + " …"
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

func isStatusKind(apiVersion, kind []byte) bool {
	return string(kind) == "Status" && (string(apiVersion) == "v1" || string(apiVersion) == "meta.k8s.io/v1" || len(apiVersion) == 0)
}

// jsonStatus reads a Status. A member that has the wrong type is left out, and the rest counts all the same: whoever
// sends an odd Status has still something to say.
func jsonStatus(c cursor) *metav1.Status {
	status := &metav1.Status{}
	plan := newJSONCompiler().structOf(reflect.TypeFor[metav1.Status]())
	r := jsonReader{cursor: c}
	for end := r.enter(); r.k < end; {
		f, next := plan.find(r.content()), r.behind()
		if f != nil {
			to, err := f.of(reflect.ValueOf(status).Elem())
			before := reflect.New(f.typ).Elem()
			before.Set(to)
			if err != nil || f.decode(&r, to) != nil {
				to.Set(before)
			}
		}
		r.k = next
	}
	return status
}

// failedEvent is the error that an ERROR frame ends a watch with. raw is what the frame holds, for a message where that
// is no Status.
func failedEvent(status *metav1.Status, raw []byte) *apierrors.StatusError {
	if status == nil || status.Code == 0 && status.Reason == "" && status.Message == "" {
		status = &metav1.Status{Message: fmt.Sprintf("the server ended the watch with an error that is not a Status: %q", excerpt(raw))}
	}
	status.Status = metav1.StatusFailure
	if status.Code == 0 && status.Reason == "" {
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	return &apierrors.StatusError{ErrStatus: *status}
}
