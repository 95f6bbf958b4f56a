package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// Conversion is a webhook for ConversionReviews of one custom resource. One version, of type H, is the hub; a spoke
// converts between the hub and another version. So n versions need n-1 spokes, and not a function for each pair. It
// corresponds to Hub and Convertible of controller-runtime.
//
// The answer has the metadata of the original with the labels and annotations of the converted object, because the API
// server allows no other change. If one object of a review cannot be converted, the review fails with its name.
type Conversion[H any] struct {
	// Hub is the resource of H.
	Hub api.Resource
	// Spokes convert all other versions of the resource.
	Spokes []Spoke[H]
}

// Spoke converts between one version and the hub; see NewSpoke.
type Spoke[H any] struct {
	version string
	toHub   func(ctx context.Context, raw []byte) (H, error)
	fromHub func(hub H) (any, error)
}

// NewSpoke returns a Spoke for a version such as "v1alpha1", with objects of type S. Both functions get an object of
// their own. They must copy the metadata, and must not lose fields: a client that reads one version and writes it back
// changes nothing else. Fields that the other version lacks can be kept in an annotation. S and H must declare all
// fields of their versions.
func NewSpoke[S, H any](version string, toHub func(S) (H, error), fromHub func(H) (S, error)) Spoke[H] {
	if version == "" || toHub == nil || fromHub == nil {
		panic("webhook: a Spoke needs a version and both functions")
	}
	objects := codec.New[S](codec.Options{MaxObjectBytes: maxCodecBytes})
	return Spoke[H]{
		version: version,
		toHub: func(ctx context.Context, raw []byte) (hub H, err error) {
			object, err := decode(ctx, objects, raw)
			if err != nil {
				return hub, err
			}
			return toHub(object)
		},
		fromHub: func(hub H) (any, error) { return fromHub(hub) },
	}
}

// hook compiles the webhook.
func (c Conversion[H]) hook() hook {
	if c.Hub.Version == "" || c.Hub.Kind == "" {
		panic("webhook: Conversion.Hub needs a version and a kind")
	}
	reviews := codec.New[*conversionReview](codec.Options{MaxObjectBytes: maxCodecBytes})
	v := newConverter(c)
	return hook{conversion: true, review: func(ctx context.Context, body []byte) (any, error) {
		review, err := decode(ctx, reviews, body)
		if err != nil {
			return nil, unreadable(conversionKind, err)
		}
		r := review.Request
		switch {
		case review.APIVersion != conversionVersion || review.Kind != conversionKind:
			return nil, wrongReview(review.TypeMeta, conversionVersion, conversionKind)
		case r == nil || r.UID == "":
			return nil, refuse(http.StatusBadRequest, "the ConversionReview has no request with a uid")
		}
		response := &conversionResponse{UID: r.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		response.ConvertedObjects, err = v.convertAll(ctx, r)
		switch {
		case err != nil && timedOut(ctx, err):
			return nil, &failure{http.StatusGatewayTimeout, err}
		case err != nil:
			response.Result = failed(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
		}
		return &conversionReview{TypeMeta: review.TypeMeta, Response: response}, nil
	}}
}

// converter converts between all versions of a resource.
type converter[H any] struct {
	hub     api.Resource
	spokes  map[string]Spoke[H] // by version, with one for the hub itself
	headers *codec.Codec[*header]
}

func newConverter[H any](c Conversion[H]) *converter[H] {
	itself := func(hub H) (H, error) { return hub, nil }
	v := &converter[H]{hub: c.Hub, spokes: map[string]Spoke[H]{}, headers: codec.New[*header](codec.Options{MaxObjectBytes: maxCodecBytes})}
	for _, s := range append([]Spoke[H]{NewSpoke(c.Hub.Version, itself, itself)}, c.Spokes...) {
		if _, twice := v.spokes[s.version]; twice || s.toHub == nil {
			panic(fmt.Sprintf("webhook: Conversion needs one Spoke from NewSpoke for each version except the hub's; the version is %q", s.version))
		}
		v.spokes[s.version] = s
	}
	return v
}

// convertAll converts the objects of a review, in their order.
func (v *converter[H]) convertAll(ctx context.Context, r *conversionRequest) ([]json.RawMessage, error) {
	to, err := v.spoke(r.DesiredAPIVersion)
	if err != nil {
		return nil, err
	}
	converted := make([]json.RawMessage, 0, len(r.Objects))
	for i, raw := range r.Objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := decode(ctx, v.headers, raw)
		if err != nil {
			return nil, fmt.Errorf("object %d of the review: %w", i, err)
		}
		object, err := v.convert(ctx, h, raw, to)
		if err != nil {
			return nil, fmt.Errorf("convert %s from %s to %s: %w", quote.Short(api.FormatKey(h.key()), maxName), describe(h.GroupVersionKind()), to.version, err)
		}
		converted = append(converted, object)
	}
	return converted, nil
}

// spoke returns the spoke of an apiVersion.
func (v *converter[H]) spoke(apiVersion string) (Spoke[H], error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	s, known := v.spokes[gv.Version]
	if err != nil || gv.Group != v.hub.Group || !known {
		var all []string
		for version := range v.spokes {
			all = append(all, version)
		}
		slices.Sort(all)
		return s, fmt.Errorf("the webhook does not know the version %q; it converts %s of %s/%s",
			quote.Short(apiVersion, maxName), strings.Join(all, ", "), v.hub.Group, v.hub.Kind)
	}
	return s, nil
}

// header has the fields that a conversion must not change.
type header struct {
	metav1.TypeMeta `json:",inline"`

	Metadata map[string]json.RawMessage `json:"metadata"`
}

// text returns a member of the metadata that is a string, or "".
func (h *header) text(member string) (text string) {
	_ = json.Unmarshal(h.Metadata[member], &text)
	return text
}

func (h *header) key() api.Key {
	return types.NamespacedName{Namespace: h.text("namespace"), Name: h.text("name")}
}

// convert converts one object.
func (v *converter[H]) convert(ctx context.Context, h *header, raw []byte, to Spoke[H]) (json.RawMessage, error) {
	from, err := v.spoke(h.APIVersion)
	switch {
	case err != nil:
		return nil, err
	case h.Kind != v.hub.Kind:
		return nil, fmt.Errorf("the webhook converts only the kind %s", v.hub.Kind)
	case from.version == to.version:
		return raw, nil
	}
	hub, err := from.toHub(ctx, raw)
	if err != nil {
		return nil, err
	}
	object, err := to.fromHub(hub)
	if err != nil {
		return nil, err
	}
	resource := v.hub
	resource.Version = to.version
	text, err := codec.Marshal(object, codec.MediaTypeJSON, resource)
	if err != nil {
		return nil, err
	}
	return v.withMetadata(ctx, h, text, to.version)
}

// withMetadata returns a converted object with the type of its version and the metadata of the original.
func (v *converter[H]) withMetadata(ctx context.Context, original *header, text []byte, version string) (json.RawMessage, error) {
	h, err := decode(ctx, v.headers, text)
	if err != nil {
		return nil, err
	}
	for _, member := range []string{"name", "namespace", "uid"} {
		if got, want := h.text(member), original.text(member); got != want {
			return nil, fmt.Errorf("the converted object has the %s %q, and the original has %q; the conversion must copy the metadata", member, got, want)
		}
	}
	if original.Metadata == nil { // the object has no metadata
		original.Metadata = map[string]json.RawMessage{}
	}
	for _, member := range []string{"labels", "annotations"} {
		delete(original.Metadata, member)
		if value, has := h.Metadata[member]; has {
			original.Metadata[member] = value
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	for member, value := range map[string]any{
		"apiVersion": schema.GroupVersion{Group: v.hub.Group, Version: version}.String(), "kind": v.hub.Kind, "metadata": original.Metadata,
	} {
		if members[member], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(members)
}

// decode decodes one object.
func decode[T any](ctx context.Context, c *codec.Codec[T], raw []byte) (T, error) {
	return c.DecodeObject(ctx, bytes.NewReader(raw), codec.MediaTypeJSON, api.Resource{})
}
