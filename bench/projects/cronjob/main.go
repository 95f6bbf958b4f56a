// Command cronjob measures the caches of the CronJob operator of this bench, which is written with controller-runtime.
package main

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/bench/operator/cronjob"
	"github.com/leatproject/leat/bench/operator/onruntime"
	"github.com/leatproject/leat/bench/projects/rig"
)

func main() {
	utilruntime.Must(cronjob.AddToScheme(scheme.Scheme))
	c := &cronjob.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cron"}}
	//leat:fields metadata.name
	rig.Main(rig.Project{
		Name:    "CronJob of this bench",
		Groups:  []schema.GroupVersion{cronjob.GroupVersion},
		Objects: []client.Object{c},
		Masks:   map[client.Object][]string{&corev1.Pod{}: PodFields, &batchv1.Job{}: JobFields},
		Setup:   onruntime.Setup,
	})
}
