package wire

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzAccept parses arbitrary Accept headers.
func FuzzAccept(f *testing.F) {
	f.Add("application/json;q=0.5, */*")
	f.Add("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,,;=;q=x")
	f.Fuzz(func(t *testing.T, header string) {
		clauses := parseAccept(header)
		for i := 1; i < len(clauses); i++ {
			require.False(t, clauses[i].q > clauses[i-1].q, "sorted by preference")
		}
	})
}

// The answers are those of kube-apiserver 1.37.2.
func TestNegotiate(t *testing.T) {
	const (
		three   = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
		streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
		route   = "406: Not Acceptable\n\nAvailable representations: "
		only    = "only the following media types are accepted: "
		partial = ";as=PartialObjectMetadata;g=meta.k8s.io;v="
		table   = ";as=Table;g=meta.k8s.io;v="
	)
	all := []string{JSON, YAML, Protobuf}
	get := Offer{Types: all, Route: true, Kinds: []string{Table}}
	list := Offer{Types: all, Route: true, Kinds: []string{Table}, Streams: true}
	custom := Offer{Types: all, Kinds: []string{Table}, Custom: true}
	document := Offer{Types: all, Route: true, Plain: true}
	for _, test := range []struct {
		offer  Offer
		accept string
		want   Media
		err    string
	}{
		{get, "", Media{Type: JSON, Errors: JSON}, ""},
		{get, "*/*", Media{Type: JSON, Errors: JSON}, ""},
		{get, "application/*", Media{Type: JSON, Errors: JSON}, route + three},
		{get, "application/*,application/yaml;q=0.5", Media{Type: JSON, Errors: JSON}, ""},
		{get, "application/json;q=0.5,application/yaml", Media{Type: YAML, Errors: YAML}, ""},
		{get, "application/cbor", Media{Type: JSON, Errors: JSON}, route + three},
		{get, "json", Media{Type: JSON, Errors: JSON}, route + three},
		{list, "text/plain", Media{Type: JSON, Errors: JSON}, route + three + ", " + streams},
		{Offer{Types: all, Route: true, Text: true}, "application/cbor", Media{Type: JSON, Errors: JSON}, route + "text/plain, " + three},
		{Offer{Types: all, Route: true, Text: true}, "text/plain", Media{Type: JSON, Errors: JSON}, only + three},
		{get, JSON + partial + "v1", Media{Type: JSON, Errors: JSON, As: "PartialObjectMetadata", Version: "v1"}, ""},
		{get, JSON + partial + "v1beta1", Media{Type: JSON, Errors: JSON, As: "PartialObjectMetadata", Version: "v1beta1"}, ""},
		{get, JSON + partial + "v9", Media{Type: JSON, Errors: JSON}, only + three},
		{get, Protobuf + partial + "v1", Media{Type: Protobuf, Errors: JSON, As: "PartialObjectMetadata", Version: "v1"}, ""},
		{get, Protobuf + partial + "v1," + Protobuf, Media{Type: Protobuf, Errors: Protobuf, As: "PartialObjectMetadata", Version: "v1"}, ""},
		{get, YAML + table + "v1", Media{Type: YAML, Errors: JSON, As: Table, Version: "v1"}, ""},
		{get, Protobuf + table + "v1", Media{Type: JSON, Errors: JSON}, only + three},
		{get, JSON + ";as=Nothing;g=meta.k8s.io;v=v1," + YAML, Media{Type: YAML, Errors: YAML}, ""},
		{list, YAML + "," + Protobuf + ";stream=watch", Media{Type: YAML, Errors: YAML}, ""},
		{list, YAML + ";stream=watch," + Protobuf, Media{Type: Protobuf, Errors: Protobuf}, ""},
		{list, JSON + ";stream=other", Media{Type: JSON, Errors: JSON}, only + three},
		{list, JSON + partial + "v9", Media{Type: JSON, Errors: JSON}, only + three},
		{custom, "application/cbor", Media{Type: JSON, Errors: JSON}, only + three},
		{custom, "application/*", Media{Type: JSON, Errors: JSON}, ""},
		{custom, Protobuf, Media{Type: JSON, Errors: Protobuf}, only + three},
		{custom, Protobuf + partial + "v1", Media{Type: Protobuf, Errors: JSON, As: "PartialObjectMetadata", Version: "v1"}, ""},
		{document, Protobuf, Media{Type: Protobuf, Errors: Protobuf}, ""},
		{document, JSON + partial + "v1", Media{Type: JSON, Errors: JSON}, only + three},
	} {
		have, err := test.offer.Negotiate(test.accept)
		require.Equal(t, test.want, have, "%q", test.accept)
		if test.err == "" {
			require.NoError(t, err, "%q", test.accept)
			continue
		}
		require.EqualError(t, err, test.err, "%q", test.accept)
		require.Equal(t, int32(http.StatusNotAcceptable), StatusOf(err).Code)
	}
}

func TestWatchesHaveNoYAML(t *testing.T) {
	o := Offer{Types: []string{JSON, YAML, Protobuf}}
	require.NoError(t, o.CheckStream(Media{Type: JSON}))
	require.NoError(t, o.CheckStream(Media{Type: Protobuf}))
	err := o.CheckStream(Media{Type: YAML, Errors: YAML})
	require.EqualError(t, err, "only the following media types are accepted: "+
		"application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
	require.Equal(t, int32(http.StatusNotAcceptable), StatusOf(err).Code)
}

func TestAggregatedType(t *testing.T) {
	const form = ";g=apidiscovery.k8s.io;as=APIGroupDiscoveryList;v="
	for accept, want := range map[string]string{
		"":                                       "",
		"*/*":                                    "",
		JSON + form + "v2":                       JSON,
		YAML + form + "v2":                       YAML,
		JSON + form + "v2beta1":                  "",
		JSON + form + "v2beta1," + JSON:          "",
		JSON + "," + JSON + form + "v2":          "",
		JSON + form + "v9," + YAML + form + "v2": YAML,
	} {
		require.Equal(t, want, AggregatedType(accept), "%q", accept)
	}
}
