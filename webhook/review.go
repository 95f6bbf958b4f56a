package webhook

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The reviews that this package understands, in their JSON. k8s.io/api and k8s.io/apiextensions-apiserver have the same
// types; a program that imports these links hundreds of others.
const (
	admissionVersion  = "admission.k8s.io/v1"
	admissionKind     = "AdmissionReview"
	conversionVersion = "apiextensions.k8s.io/v1"
	conversionKind    = "ConversionReview"
)

// jsonPatchType is the only patch type of an AdmissionReview.
const jsonPatchType = "JSONPatch"

type admissionReview struct {
	metav1.TypeMeta `json:",inline"`

	Request  *admissionRequest  `json:"request,omitempty"`
	Response *admissionResponse `json:"response,omitempty"`
}

type admissionRequest struct {
	Request `json:",inline"`

	Object    json.RawMessage `json:"object"`
	OldObject json.RawMessage `json:"oldObject"`
}

type admissionResponse struct {
	UID       types.UID      `json:"uid"`
	Allowed   bool           `json:"allowed"`
	Status    *metav1.Status `json:"status,omitempty"`
	Patch     []byte         `json:"patch,omitempty"` // base64 in JSON
	PatchType string         `json:"patchType,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
}

type conversionReview struct {
	metav1.TypeMeta `json:",inline"`

	Request  *conversionRequest  `json:"request,omitempty"`
	Response *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID         `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID         `json:"uid"`
	ConvertedObjects []json.RawMessage `json:"convertedObjects"`
	Result           metav1.Status     `json:"result"`
}
