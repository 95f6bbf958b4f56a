// Command controller-runtime runs the CronJob operator on controller-runtime.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/leatproject/leat/bench/operator/onruntime"
)

func main() {
	if err := onruntime.Run(context.Background(), os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
