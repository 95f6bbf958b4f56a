package wire

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/leatproject/leat/api"
)

// severalLines is the beginning of an error about repeated fields in YAML, which has one line for each.
const severalLines = "yaml: unmarshal errors:\n"

// ReportFields treats unknown and repeated fields as the parameter fieldValidation of a request says (KEP-2885). Strict
// rejects the request; Warn, the default, sends Warning headers; Ignore does nothing.
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
		for line := range strings.Lines(strings.TrimPrefix(text, severalLines)) {
			if header, err := utilnet.NewWarningHeader(299, "-", strings.TrimSpace(line)); err == nil {
				w.Header().Add("Warning", header)
			}
		}
	}
	return nil
}
