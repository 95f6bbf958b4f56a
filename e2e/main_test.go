package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/leatproject/leat/e2e/cluster"
)

// server is the cluster of all tests. A test that kills or restarts it must restore its original state and must not run
// in parallel with others.
var server *cluster.Cluster

func TestMain(m *testing.M) {
	if config := os.Getenv(replicaVariable); config != "" {
		os.Exit(runReplica(config))
	}
	if config := os.Getenv(memberVariable); config != "" {
		os.Exit(runMember(config))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server = cluster.New(cluster.Options{Binaries: "bin"})
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	select {
	case <-server.Ready():
	case err := <-ended:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the API server's log ends with\n%s\n", server.Log(40))
	}
	cancel()
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
