package testserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

func BenchmarkCreate(b *testing.B) {
	srv := testserver.New(testserver.Options{})
	m := doc{"metadata": doc{"generateName": "m-", "namespace": "default"}, "data": doc{"text": strings.Repeat("x", 1<<10)}}
	b.ReportAllocs()
	for b.Loop() {
		_, err := srv.Create(configMaps, m)
		require.NoError(b, err)
	}
}
