package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/webhook"
)

// Oven is a custom resource.
type Oven struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Degrees int `json:"degrees,omitempty"`
	} `json:"spec"`
}

var ovens = api.Resource{Group: "bakery.example", Version: "v1", Kind: "Oven", Plural: "ovens", Namespaced: true}

// ovenRules are the defaults and the validation of ovens.
type ovenRules struct{}

func (ovenRules) Default(_ context.Context, o *Oven) error {
	if o.Spec.Degrees == 0 {
		o.Spec.Degrees = 220
	}
	return nil
}

func (ovenRules) ValidateCreate(_ context.Context, o *Oven) (warnings []string, err error) {
	if o.Spec.Degrees > 250 {
		warnings = append(warnings, "bread burns above 250 degrees")
	}
	if o.Spec.Degrees > 500 {
		return warnings, field.Invalid(field.NewPath("spec", "degrees"), o.Spec.Degrees, "must be at most 500")
	}
	return warnings, nil
}

func (r ovenRules) ValidateUpdate(ctx context.Context, _, o *Oven) (warnings []string, err error) {
	return r.ValidateCreate(ctx, o)
}

func (ovenRules) ValidateDelete(context.Context, *Oven) (warnings []string, err error) {
	return nil, nil
}

// A Server is an http.Handler, so a test needs neither a network nor a certificate.
func ExampleServer_Handle() {
	server, err := webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	server.Handle("/mutate-oven", webhook.Admission[*Oven]{Resource: ovens, Default: ovenRules{}})
	server.Handle("/validate-oven", webhook.Admission[*Oven]{Resource: ovens, Validate: ovenRules{}})

	send := func(path, spec string) string {
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
			"kind":{"group":"bakery.example","version":"v1","kind":"Oven"},"name":"big",
			"object":{"apiVersion":"bakery.example/v1","kind":"Oven","metadata":{"name":"big"},"spec":` + spec + `}}}`
		request := httptest.NewRequest("POST", path, strings.NewReader(review))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		return answer.Body.String()
	}
	fmt.Println(strings.Contains(send("/mutate-oven", `{}`), `"patchType":"JSONPatch"`))
	fmt.Println(strings.Contains(send("/validate-oven", `{"degrees":600}`), "spec.degrees: Invalid value: 600: must be at most 500"))
	// Output:
	// true
	// true
}

// A type with only metadata is enough for a webhook about all kinds. The patch changes no other field.
func ExampleAdmission_metadata() {
	server, _ := webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"})
	server.Handle("/label", webhook.Admission[*metav1.PartialObjectMetadata]{
		Default: webhook.DefaultFunc[*metav1.PartialObjectMetadata](func(ctx context.Context, o *metav1.PartialObjectMetadata) error {
			metav1.SetMetaDataLabel(&o.ObjectMeta, "made-by", webhook.RequestFrom(ctx).UserInfo.Username)
			return nil
		}),
	})
	server.Handle("/keep", webhook.Admission[*metav1.PartialObjectMetadata]{
		Validate: webhook.ValidateFunc[*metav1.PartialObjectMetadata](func(ctx context.Context, o *metav1.PartialObjectMetadata) ([]string, error) {
			if old, ok := webhook.OldObject[*metav1.PartialObjectMetadata](ctx); ok && old.Labels["made-by"] != o.Labels["made-by"] {
				return nil, errors.New("the label made-by cannot change")
			}
			return nil, nil
		}),
	})
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"UPDATE","userInfo":{"username":"baker"},
		"object":{"metadata":{"name":"a","labels":{}}},"oldObject":{"metadata":{"name":"a","labels":{"made-by":"baker"}}}}}`
	for _, path := range []string{"/label", "/keep"} {
		request := httptest.NewRequest("POST", path, strings.NewReader(review))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		var reviewed struct {
			Response struct {
				Patch  []byte
				Status metav1.Status
			}
		}
		_ = json.Unmarshal(answer.Body.Bytes(), &reviewed)
		fmt.Printf("%s%s\n", reviewed.Response.Patch, reviewed.Response.Status.Message)
	}
	// Output:
	// [{"op":"add","path":"/metadata/labels/made-by","value":"baker"}]
	// the label made-by cannot change
}

// OldOven is version v1alpha1 of an oven. The temperature is a text.
type OldOven struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Heat string `json:"heat,omitempty"`
	} `json:"spec"`
}

func ExampleNewSpoke() {
	spoke := webhook.NewSpoke("v1alpha1",
		func(old *OldOven) (*Oven, error) {
			o := &Oven{ObjectMeta: old.ObjectMeta}
			var err error
			o.Spec.Degrees, err = strconv.Atoi(old.Spec.Heat)
			return o, err
		},
		func(o *Oven) (*OldOven, error) {
			old := &OldOven{ObjectMeta: o.ObjectMeta}
			old.Spec.Heat = strconv.Itoa(o.Spec.Degrees)
			return old, nil
		})
	server, _ := webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"})
	server.Handle("/convert", webhook.Conversion[*Oven]{Hub: ovens, Spokes: []webhook.Spoke[*Oven]{spoke}})

	review := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"bakery.example/v1",
		"objects":[{"apiVersion":"bakery.example/v1alpha1","kind":"Oven","metadata":{"name":"old"},"spec":{"heat":"200"}}]}}`
	request := httptest.NewRequest("POST", "/convert", strings.NewReader(review))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, request)
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), `"spec":{"degrees":200}`))
	// Output:
	// 200 true
}
