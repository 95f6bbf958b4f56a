package main

import (
	"github.com/spf13/cobra"

	"github.com/leatproject/leat/cmd/leat/internal/demo"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
)

func newDemo() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole pipeline at work, without a cluster",
		Long: `Start an API server in memory and a small controller that gives every ReplicaSet its pods, create, change and delete
objects, break the connection, and print what each stage of the pipeline did. It needs nothing and ends by itself, within
a second or so: add --keep-running to look at --metrics, or at the API, afterwards. --page stays up too, keeps changing
objects, and serves a page that shows the pipeline at work. --record writes a recording for leat show and leat replay.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo.Run(cmd.Context(), cmd.OutOrStdout(), o) },
	}
	cmd.Flags().BoolVar(&o.KeepRunning, "keep-running", false, "stay up in the end, and serve the API on a local port")
	cmd.Flags().StringVar(&o.Record, "record", "", "write a recording to this new file (default: none)")
	endpoint.MetricsFlag(cmd, &o.Metrics)
	endpoint.PageFlag(cmd, &o.Page)
	return cmd
}
