package wireplan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/codec/internal/plan"
)

// A name or a UID takes no place among the recent strings of an answer.
func TestStringsSeenOnceAreNotKept(t *testing.T) {
	r := NewReader(plan.NewInterner(plan.MaxStrings), nil)
	r.Remember()
	held := func(text string) bool { return *r.recent.slot([]byte(text)) == text }
	for _, text := range []string{"twice", "twice", "a name"} {
		require.Equal(t, text, r.text([]byte(text)))
	}
	require.True(t, held("twice"))
	require.False(t, held("a name"))
}
