package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSweepRemovesWhatNobodyHolds(t *testing.T) {
	parent := t.TempDir()
	abandoned := filepath.Join(parent, folderPrefix+"abandoned")
	require.NoError(t, os.Mkdir(abandoned, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(abandoned, "lock"), nil, 0o600))

	kept, releaseKept, err := workingFolder(parent, true)
	require.NoError(t, err)
	require.NoDirExists(t, abandoned)

	held, releaseHeld, err := workingFolder(parent, false)
	require.NoError(t, err)
	require.DirExists(t, kept, "a folder in use was swept")
	releaseKept()

	_, releaseLast, err := workingFolder(parent, false)
	require.NoError(t, err)
	require.DirExists(t, kept, "a folder that was to be kept was swept")
	require.DirExists(t, held)
	releaseLast()
	releaseHeld()
	require.NoDirExists(t, held)
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := freePorts(20)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, p := range ports {
		require.False(t, seen[p], "port %d twice", p)
		seen[p] = true
	}
}
