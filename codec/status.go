package codec

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/internal/quote"
)

const (
	maxStatusBytes  = 64 << 10 // of an error body; a Status with a long list of causes fits
	maxMessageBytes = 1 << 10  // of the message of a Status, which is the text of an error
	maxExcerptBytes = 256      // of a body that is not a Status; they become a part of the message
	maxCauses       = 1 << 10  // of a Status; they are not a part of the text
	maxNameBytes    = 253      // of a name in a Status
)

// Failure is an answer whose HTTP status reports an error.
type Failure struct {
	Code      int       // the HTTP status
	MediaType string    // the Content-Type
	Body      io.Reader // at most 64 KiB are read
}

// Error returns the Status in the body of a failed answer. If the body has no Status, Error makes one from the HTTP
// status and the first 256 bytes of a text body; it does not quote an object. A message has at most 1 KiB. Error never
// fails, and blocks as Body does. It corresponds to transformResponse of client-go's rest.Request.
func (f Failure) Error() *apierrors.StatusError {
	body, _ := io.ReadAll(io.LimitReader(f.Body, maxStatusBytes)) // an incomplete body is better than none
	status := f.status(body)
	if status == nil {
		status = f.generic(body)
	}
	limitStatus(status)
	return &apierrors.StatusError{ErrStatus: *status}
}

// status returns the Status in body, or nil if body has no Status that reports a failure.
func (f Failure) status(body []byte) *metav1.Status {
	at := formatOf(f.MediaType)
	if at < 0 {
		return nil
	}
	status := formats[at].status(body)
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
	if at := formatOf(f.MediaType); strings.HasPrefix(f.MediaType, "text/") || at >= 0 && formats[at].isText() {
		message = excerpt(body)
	}
	err := apierrors.NewGenericServerResponse(f.Code, "", schema.GroupResource{}, "", message, 0, true)
	return &err.ErrStatus
}

// excerpt returns the beginning of a body, for a message.
func excerpt(body []byte) string {
	body = bytes.TrimSpace(body)
	if quote.IsObject(body) {
		return fmt.Sprintf("an object of %d bytes that is no Status", len(body))
	}
	if len(body) > maxExcerptBytes {
		return strings.ToValidUTF8(string(body[:maxExcerptBytes]), "") + " …"
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// limitStatus limits the parts of a Status that become the text of errors, and its list of causes.
func limitStatus(s *metav1.Status) {
	s.Message = quote.Short(s.Message, maxMessageBytes)
	s.Reason = metav1.StatusReason(quote.Short(string(s.Reason), maxQuoted))
	if s.Details == nil {
		return
	}
	d := s.Details
	d.Name, d.Group, d.Kind = quote.Short(d.Name, maxNameBytes), quote.Short(d.Group, maxNameBytes), quote.Short(d.Kind, maxNameBytes)
	d.Causes = d.Causes[:min(len(d.Causes), maxCauses)]
	for i := range d.Causes {
		c := &d.Causes[i]
		c.Type = metav1.CauseType(quote.Short(string(c.Type), maxQuoted))
		c.Message, c.Field = quote.Short(c.Message, maxMessageBytes), quote.Short(c.Field, maxMessageBytes)
	}
}

func isStatusKind(apiVersion, kind []byte) bool {
	return string(kind) == "Status" && (string(apiVersion) == "v1" || string(apiVersion) == "meta.k8s.io/v1" || len(apiVersion) == 0)
}

// failedEvent returns the error of an ERROR frame. size is the length of the frame's object in bytes, for the message
// if the object is not a Status.
func failedEvent(status *metav1.Status, size int) *apierrors.StatusError {
	if status == nil || status.Code == 0 && status.Reason == "" && status.Message == "" {
		status = &metav1.Status{Message: fmt.Sprintf("the server ended the watch with an error that is not a Status, of %d bytes", size)}
	}
	limitStatus(status)
	status.Status = metav1.StatusFailure
	if status.Code == 0 && status.Reason == "" {
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	return &apierrors.StatusError{ErrStatus: *status}
}
