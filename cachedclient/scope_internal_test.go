package cachedclient

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pump has fields of every kind.
type pump struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Site   string   `json:"site,omitempty"`
		Litres int64    `json:"litres,omitempty"`
		On     bool     `json:"on,omitempty"`
		Tags   []string `json:"tags,omitempty"`
	} `json:"spec"`

	broken bool // it has no JSON
}

func (p *pump) MarshalJSON() ([]byte, error) {
	if p.broken {
		return nil, errors.New("broken")
	}
	type plain pump
	return json.Marshal((*plain)(p))
}

// TestScopeOfSelectors compares one pump with selectors. A pump that is not whole may have more fields on the server.
func TestScopeOfSelectors(t *testing.T) {
	p := &pump{ObjectMeta: metav1.ObjectMeta{Namespace: "east", Name: "alpha", Labels: map[string]string{"app": "web"}}}
	p.Spec.Site, p.Spec.Litres, p.Spec.On, p.Spec.Tags = "n1", 12_000_000, true, []string{"n1"}
	for _, tc := range []struct {
		labels, fields string
		whole, partial bool // whether the selectors match
	}{
		{"", "", true, true},
		{"app=web", "", true, true},
		{"app=other", "", false, false},
		{"a=b=c", "", true, true},
		{"", "a=b=c", true, true},
		{"", "metadata.name=alpha", true, true},
		{"", "metadata.name=beta", false, false},
		{"", "spec.site=n1", true, true},
		{"", "spec.site=n2", false, false},
		{"", "spec.site!=n1", false, false},
		{"", "spec.site!=n2", true, true},
		{"", "spec.site=n1,metadata.name=beta", false, false},
		{"", "spec.litres=12000000", true, true},
		{"", "spec.litres=12000001", false, false},
		{"", "spec.on=true", true, true},
		{"", "spec.missing=n1", false, true},
		{"", "spec.missing=", true, true},
		{"", "spec.missing!=", false, true},
		{"", "spec.missing!=n1", true, true},
		{"", "spec.tags=n1", false, true},
		{"", "spec.tags!=", false, true},
		{"", "spec=n1", false, true},
		{"", "spec!=", false, true},
		{"", "spec.site.deeper=n1", false, true},
		{"", "spec.site.deeper!=", false, true},
	} {
		s := parseSelectors[*pump](tc.labels, tc.fields)
		require.Equal(t, tc.partial, s.includes(p), "partial: %q %q", tc.labels, tc.fields)
		s.whole = true
		require.Equal(t, tc.whole, s.includes(p), "whole: %q %q", tc.labels, tc.fields)
	}
	s := parseSelectors[*pump]("", "spec.site=n2")
	s.whole = true
	p.broken = true
	require.True(t, s.includes(p), "an object without JSON")
	s.namespace = "west"
	require.False(t, s.includes(p))
}
