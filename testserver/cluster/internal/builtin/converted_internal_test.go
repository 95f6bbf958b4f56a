package builtin

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/internal/fixture/must"
)

// TestConversionsAddNothingToOtherKinds converts random objects of every kind to the internal version and back. What
// the conversion adds belongs to the writer, so a kind with such fields needs row.converted.
func TestConversionsAddNothingToOtherKinds(t *testing.T) {
	for _, g := range groups() {
		for _, r := range g.resources {
			if r.converted || r.strategy == nil || g.name == "apiregistration.k8s.io" {
				continue
			}
			for _, version := range g.versions {
				gv := internal(g.name)
				gv.Version = version
				t.Run(gv.WithKind(r.kind).String(), func(t *testing.T) {
					for seed := range int64(30) {
						obj := must.Get(legacyscheme.Scheme.New(gv.WithKind(r.kind)))(t)
						fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), legacyscheme.Codecs).NilChance(.3).Fill(obj)
						if d, ok := obj.(*appsv1.Deployment); ok { // the random type of its strategy prevents defaults
							d.Spec.Strategy = appsv1.DeploymentStrategy{}
						}
						obj.GetObjectKind().SetGroupVersionKind(gv.WithKind(r.kind))
						complete(obj)
						before := must.Get(json.Marshal(obj))(t)
						common := must.Get(convert(obj, internal(g.name)))(t)
						obj = must.Get(convert(common, gv))(t)
						obj.GetObjectKind().SetGroupVersionKind(gv.WithKind(r.kind))
						after := must.Get(json.Marshal(obj))(t)
						require.JSONEq(t, string(before), string(after))
					}
				})
			}
		}
	}
}
