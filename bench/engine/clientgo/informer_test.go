package clientgo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/bench/subject"
)

// Informers have the factory's index, except those of a stripped entrant.
func TestIndexOfTheFactory(t *testing.T) {
	for _, form := range []subject.Form{subject.Full, subject.Metadata, subject.Unstructured} {
		for _, strip := range []bool{false, true} {
			i, err := informerOf(subject.Spec{URL: "http://127.0.0.1:1", Form: form, Strip: strip})
			require.NoError(t, err)
			require.Equal(t, strip, len(i.GetIndexer().GetIndexers()) == 0, "%s, %t", form, strip)
		}
	}
}
