package wire

import (
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
