package main

import (
	"context"
	"fmt"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/owner"
)

func main() {
	p, err := newCronJobs(program.Options{Name: "cronjob"})
	if err == nil {
		err = manager.UntilSignal(context.Background(), p.Run)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cronjob:", err)
		os.Exit(1)
	}
}

// newCronJobs makes the program.
func newCronJobs(o program.Options) (*program.Program, error) {
	p, err := program.New(o)
	if err != nil {
		return nil, err
	}
	r := &cronJobReconciler{
		cronJobs: program.Typed(p, cronJobs, informer.Options[*CronJob]{}),
		jobs:     program.Typed(p, jobs, informer.Options[*batchv1.Job]{}),
	}
	r.byOwner = informer.AddIndex(r.jobs.Informer(), func(j *batchv1.Job) []types.UID { return []types.UID{owner.ControllerOf(j)} })
	program.Controller(p, "cronjob", r,
		controller.For(r.cronJobs.Informer()), controller.Owns(r.cronJobs.Informer(), r.jobs.Informer()))
	return p, nil
}
