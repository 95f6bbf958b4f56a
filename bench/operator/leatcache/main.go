// Command leatcache runs the CronJob operator on controller-runtime, with leat's cache.
package main

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/bench/operator/onruntime"
	"github.com/leatproject/leat/scale/packed"
)

func main() {
	cache := leatcache.Options{Hold: packed.Bytes[client.Object](), DropManagedFields: true}
	if err := onruntime.Run(context.Background(), os.Args[1], cache.New); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
