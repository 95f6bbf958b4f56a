package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/leatproject/leat/api"
)

// validateFields handles fields that occur twice in a body as the request demands (KEP-2885). Strict rejects the
// request; Warn, the default, sends Warning headers; Ignore uses the last value. Unknown fields always pass, because
// the server has no schemas.
func validateFields(w http.ResponseWriter, r *http.Request, as api.Resource, body []byte) error {
	if r.URL.Query().Get("fieldValidation") == metav1.FieldValidationIgnore {
		return nil
	}
	return ReportFields(w, r, as, Duplicates(body))
}

// ReportFields treats unknown and repeated fields as the parameter fieldValidation of a request says.
func ReportFields(w http.ResponseWriter, r *http.Request, as api.Resource, problems []string) error {
	directive := r.URL.Query().Get("fieldValidation")
	if len(problems) == 0 || directive == metav1.FieldValidationIgnore {
		return nil
	}
	if directive == metav1.FieldValidationStrict {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			as.Kind, as.Version, as.Kind, strings.Join(problems, ", ")))
	}
	for _, text := range problems {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", header)
		}
	}
	return nil
}

// Duplicates returns a message for each field that occurs twice in one object of a JSON document. It ignores all other
// errors, which the decoder reports.
func Duplicates(body []byte) []string {
	d := duplicateFinder{tokens: json.NewDecoder(bytes.NewReader(body))}
	d.tokens.UseNumber()
	_ = d.value("") // the decoder reports the error
	return d.found
}

type duplicateFinder struct {
	tokens *json.Decoder
	found  []string
}

func (d *duplicateFinder) value(path string) error {
	token, err := d.tokens.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		err = d.members(path)
	case json.Delim('['):
		for i := 0; d.tokens.More() && err == nil; i++ {
			err = d.value(fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		return nil
	}
	if err == nil {
		_, err = d.tokens.Token() // the closing bracket
	}
	return err
}

func (d *duplicateFinder) members(path string) error {
	seen := map[string]bool{}
	for d.tokens.More() {
		token, err := d.tokens.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the decoder allows only strings here
		at := strings.TrimPrefix(path+"."+name, ".")
		if seen[name] {
			d.found = append(d.found, fmt.Sprintf("duplicate field %q", at))
		}
		seen[name] = true
		if err := d.value(at); err != nil {
			return err
		}
	}
	return nil
}
