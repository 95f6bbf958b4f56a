package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// ParseDeleteOptions reads the options from the body, or from the query if there is no body.
func ParseDeleteOptions(r *http.Request) (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	body, err := ReadBody(r)
	if err != nil {
		return o, err
	}
	if len(body) > 0 {
		if err := decodeDeleteOptions(ContentType(r), body, &o); err != nil {
			return o, err
		}
		if o.Kind != "" && o.Kind != "DeleteOptions" { // the scheme of kube-apiserver is named after the line that makes it
			kind := o.GroupVersionKind()
			if o.APIVersion == "" {
				kind = metav1.SchemeGroupVersion.WithKind(kind.Kind)
			}
			return o, apierrors.NewBadRequest(runtime.NewNotRegisteredErrForKind("pkg/runtime/scheme.go:111", kind).Error())
		}
	} else {
		query := withoutEmpty(r.URL.Query(), "gracePeriodSeconds", "propagationPolicy")
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &o, nil); err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
	}
	if errs := metav1validation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return o, invalidDelete(errs)
	}
	return o, nil
}

// decodeDeleteOptions decodes a body in one of the formats that kube-apiserver accepts for built-in resources.
func decodeDeleteOptions(mediaType string, body []byte, o *metav1.DeleteOptions) error {
	var err error
	switch mediaType {
	case "application/yaml":
		if body, err = yaml.YAMLToJSON(body); err == nil {
			err = decodeJSONOptions(body, o)
		}
	case "application/json":
		err = decodeJSONOptions(body, o)
	case Protobuf:
		err = decodeEnvelope(body, o)
	default:
		return Unsupported("application/json", "application/yaml", Protobuf)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// decodeJSONOptions decodes JSON. kube-apiserver reads the kind first.
func decodeJSONOptions(body []byte, o *metav1.DeleteOptions) error {
	if err := json.Unmarshal(body, &metav1.TypeMeta{}); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	return json.Unmarshal(body, o)
}

func decodeEnvelope(body []byte, o *metav1.DeleteOptions) error {
	rest, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return errors.New("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	}
	var outer runtime.Unknown
	err := outer.Unmarshal(rest)
	if err == nil {
		err = o.Unmarshal(outer.Raw)
	}
	o.Kind, o.APIVersion = outer.Kind, outer.APIVersion
	return err
}

// invalidDelete returns the 422 for invalid options of a deletion.
func invalidDelete(errs field.ErrorList) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
}
