package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/leatproject/leat/e2e/cluster"
)

const binaries = "../bin"

// childVariable makes the test binary run a cluster until it is killed, and print the addresses.
const childVariable = "LEAT_E2E_CLUSTER_CHILD"

// shared is the cluster of the tests that do not change its state.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(withCluster(func(c *cluster.Cluster) int {
		if os.Getenv(childVariable) != "" {
			return serveUntilKilled(c)
		}
		shared = c
		code := m.Run()
		if code != 0 {
			fmt.Fprintf(os.Stderr, "the API server's log ends with\n%s\n", c.Log(40))
		}
		return code
	}))
}

func withCluster(use func(*cluster.Cluster) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cluster.New(cluster.Options{Binaries: binaries})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-c.Ready():
	case err := <-ended:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := use(c)
	cancel()
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func serveUntilKilled(c *cluster.Cluster) int {
	if err := json.NewEncoder(os.Stdout).Encode([]string{c.Address(), c.EtcdAddress()}); err != nil {
		return 1
	}
	select {}
}
