package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
)

// Bread is a custom resource in version v1.
type Bread struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Minutes int    `json:"minutes,omitempty"`
		Flour   string `json:"flour,omitempty"`
	} `json:"spec"`
}

// OldBread is version v1alpha1 of a Bread. It has a text as its time, and no flour.
type OldBread struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Time string `json:"time,omitempty"`
	} `json:"spec"`
}

var breads = api.Resource{Group: "bakery.example", Version: "v1", Kind: "Bread", Plural: "breads", Namespaced: true}

// flourAnnotation keeps the flour of a Bread in version v1alpha1.
const flourAnnotation = "bakery.example/flour"

// rules are the defaults and the validation of a Bread.
type rules struct{}

func (rules) Default(_ context.Context, b *Bread) error {
	if b.Spec.Minutes == 0 {
		b.Spec.Minutes = 45
	}
	return nil
}

func (rules) ValidateCreate(_ context.Context, b *Bread) (warnings []string, err error) {
	if b.Spec.Minutes > 90 {
		return nil, field.Invalid(field.NewPath("spec", "minutes"), b.Spec.Minutes, "must be at most 90")
	}
	if b.Spec.Minutes > 60 {
		warnings = append(warnings, "spec.minutes: the crust will be dark")
	}
	return warnings, nil
}

func (r rules) ValidateUpdate(ctx context.Context, old, b *Bread) (warnings []string, err error) {
	if webhook.RequestFrom(ctx).SubResource == "" && old.Spec.Flour != b.Spec.Flour {
		return nil, field.Forbidden(field.NewPath("spec", "flour"), "cannot change; the dough is mixed")
	}
	return r.ValidateCreate(ctx, b)
}

func (rules) ValidateDelete(context.Context, *Bread) (warnings []string, err error) { return nil, nil }

func toV1(old *OldBread) (*Bread, error) {
	b := &Bread{ObjectMeta: old.ObjectMeta}
	b.Spec.Flour = b.Annotations[flourAnnotation]
	delete(b.Annotations, flourAnnotation)
	if old.Spec.Time != "" {
		d, err := time.ParseDuration(old.Spec.Time)
		if err != nil {
			return nil, field.Invalid(field.NewPath("spec", "time"), old.Spec.Time, "must be a duration")
		}
		b.Spec.Minutes = int(d.Minutes())
	}
	return b, nil
}

func toV1alpha1(b *Bread) (*OldBread, error) {
	old := &OldBread{ObjectMeta: b.ObjectMeta}
	if b.Spec.Flour != "" { // v1alpha1 has no flour, and a conversion must not lose it
		metav1.SetMetaDataAnnotation(&old.ObjectMeta, flourAnnotation, b.Spec.Flour)
	}
	if b.Spec.Minutes != 0 {
		old.Spec.Time = fmt.Sprintf("%dm", b.Spec.Minutes)
	}
	return old, nil
}

func newWebhooks(o webhook.Options) (*webhook.Server, error) {
	server, err := webhook.New(o)
	if err != nil {
		return nil, err
	}
	server.Handle("/mutate-bread", webhook.Admission[*Bread]{Resource: breads, Default: rules{}})
	server.Handle("/validate-bread", webhook.Admission[*Bread]{Resource: breads, Validate: rules{}})
	server.Handle("/convert-bread", webhook.Conversion[*Bread]{
		Hub: breads, Spokes: []webhook.Spoke[*Bread]{webhook.NewSpoke("v1alpha1", toV1, toV1alpha1)},
	})
	return server, nil
}

func addWebhooks(m *manager.Manager, numbers *metrics.Metrics, log *zap.Logger) error {
	server, err := newWebhooks(webhook.Options{
		Address: ":9443", CertFile: "/certs/tls.crt", KeyFile: "/certs/tls.key", Observer: numbers, Logger: log,
	})
	if err != nil {
		return err
	}
	return m.Add(server)
}

func ownCertificates(client *apiclient.Client, log *zap.Logger) (*selfsigned.Source, error) {
	return selfsigned.New(selfsigned.Options{
		Client: client, Secret: api.Key{Namespace: "bakery", Name: "webhooks"}, Hosts: []string{"webhooks.bakery.svc"},
		Mutating: []string{"bakery"}, Validating: []string{"bakery"}, CustomResources: []string{"breads.bakery.example"},
		Logger: log,
	})
}

func TestBreadIsRefused(t *testing.T) {
	ctx := webhook.WithRequest(t.Context(), webhook.Request{Operation: webhook.Update})
	rye, wheat := &Bread{}, &Bread{}
	rye.Spec.Flour, wheat.Spec.Flour = "rye", "wheat"
	require.EqualError(t, must.Err(rules{}.ValidateUpdate(ctx, rye, wheat)), "spec.flour: Forbidden: cannot change; the dough is mixed")
}

func TestWebhooksOnThePage(t *testing.T) {
	server := must.Get(newWebhooks(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"}))(t)
	post := func(path, apiVersion, kind, request string) (response struct {
		Allowed          bool
		Patch            []byte
		Warnings         []string
		ConvertedObjects []json.RawMessage
	},
	) {
		body := `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","request":{"uid":"1",` + request + `}}`
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		answer := struct{ Response any }{&response}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), "%s", w.Body)
		return response
	}
	m := must.Get(manager.New(manager.Options{}))(t)
	require.NoError(t, addWebhooks(m, must.Get(metrics.New(prometheus.NewRegistry()))(t), zap.NewNop()))
	require.ErrorContains(t, m.Run(t.Context()), "/certs/tls.crt", "the page's folder does not exist here")

	client := must.Get(apiclient.New(apiclient.Config{Host: "http://127.0.0.1:1"}))(t)
	certificates := must.Get(ownCertificates(client, zap.NewNop()))(t)
	must.Get(newWebhooks(webhook.Options{Certificates: certificates}))(t)

	const created = `"kind":{"group":"bakery.example","version":"v1","kind":"Bread"},"operation":"CREATE","object":`
	mutated := post("/mutate-bread", "admission.k8s.io/v1", "AdmissionReview", created+`{"metadata":{"name":"rye"},"spec":{"seeds":true}}`)
	require.JSONEq(t, `[{"op":"add","path":"/spec/minutes","value":45}]`, string(mutated.Patch))
	validated := post("/validate-bread", "admission.k8s.io/v1", "AdmissionReview", created+`{"metadata":{"name":"rye"},"spec":{"minutes":70}}`)
	require.True(t, validated.Allowed)
	require.Len(t, validated.Warnings, 1)

	original := `{"apiVersion":"bakery.example/v1","kind":"Bread","metadata":{"name":"rye"},"spec":{"minutes":70,"flour":"rye"}}`
	there := post("/convert-bread", "apiextensions.k8s.io/v1", "ConversionReview", `"desiredAPIVersion":"bakery.example/v1alpha1","objects":[`+original+`]`)
	require.Contains(t, string(there.ConvertedObjects[0]), `"time":"70m"`)
	back := post("/convert-bread", "apiextensions.k8s.io/v1", "ConversionReview", `"desiredAPIVersion":"bakery.example/v1","objects":[`+string(there.ConvertedObjects[0])+`]`)
	var b struct{ Spec any }
	require.NoError(t, json.Unmarshal(back.ConvertedObjects[0], &b))
	require.Equal(t, map[string]any{"minutes": 70.0, "flour": "rye"}, b.Spec)
}
