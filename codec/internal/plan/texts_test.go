package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A name or a UID takes no place among the recent strings of an answer.
func TestStringsSeenOnceAreNotKept(t *testing.T) {
	texts := NewTexts(NewInterner(MaxStrings))
	texts.Remember()
	held := func(text string) bool { return texts.recent[fewBytes([]byte(text))>>(64-recentBits)] == text }
	for _, text := range []string{"twice", "twice", "a name"} {
		require.Equal(t, text, texts.Text([]byte(text)))
	}
	require.True(t, held("twice"))
	require.False(t, held("a name"))
}
