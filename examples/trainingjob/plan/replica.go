package plan

import (
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// Labels are those by which an object is known to be a replica's.
func Labels(j *job.TrainingJob, r Replica) map[string]string {
	return map[string]string{job.LabelJob: j.Name, job.LabelType: string(r.Type), job.LabelIndex: strconv.Itoa(r.Index)}
}

// NewPod is the Pod of a replica, which has no owner yet.
func NewPod(j *job.TrainingJob, r Replica) *corev1.Pod {
	spec := j.Spec.Replicas[r.Type]
	t := spec.Template.DeepCopy()
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, Labels(j, r))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: job.Name(j, r.Type, r.Index),
			Labels: labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
		},
		Spec: t.Spec,
	}
	p.Spec.RestartPolicy = podPolicy(spec.RestartPolicy)
	if c := trainer(&p.Spec); c != nil {
		equip(c, j, r)
	}
	return p
}

// podPolicy is what the kubelet is told. Whether an exit code is worth a retry it cannot know.
func podPolicy(p job.RestartPolicy) corev1.RestartPolicy {
	if p == job.ExitCode {
		return corev1.RestartPolicyNever
	}
	return corev1.RestartPolicy(p)
}

// trainer finds the container that trains.
func trainer(s *corev1.PodSpec) *corev1.Container {
	at := slices.IndexFunc(s.Containers, func(c corev1.Container) bool { return c.Name == job.ContainerName })
	if at < 0 {
		return nil
	}
	return &s.Containers[at]
}

// equip gives the container that trains its port, and tells it where the others are. A job of one replica has no others,
// and one that has a TF_CONFIG of its own knows better.
func equip(c *corev1.Container, j *job.TrainingJob, r Replica) {
	if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == job.PortName }) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: job.PortName, ContainerPort: job.DefaultPort, Protocol: corev1.ProtocolTCP})
	}
	own := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == configVariable })
	if len(wanted(j)) > 1 && !own {
		c.Env = append(c.Env, corev1.EnvVar{Name: configVariable, Value: config(j, r)})
	}
}

// configVariable is what TensorFlow reads its place in the cluster from (tf.distribute.cluster_resolver.TFConfigClusterResolver).
const configVariable = "TF_CONFIG"

func config(j *job.TrainingJob, r Replica) string {
	type task struct {
		Type  job.ReplicaType `json:"type"`
		Index int             `json:"index"`
	}
	cluster := map[job.ReplicaType][]string{}
	for _, other := range wanted(j) {
		host := job.Name(j, other.Type, other.Index) + "." + j.Namespace + ".svc"
		cluster[other.Type] = append(cluster[other.Type], net.JoinHostPort(host, strconv.Itoa(int(port(j, other.Type)))))
	}
	text, err := json.Marshal(struct {
		Cluster     map[job.ReplicaType][]string `json:"cluster"`
		Task        task                         `json:"task"`
		Environment string                       `json:"environment"`
	}{cluster, task(r), "cloud"})
	if err != nil {
		panic(err) // strings and numbers are JSON
	}
	return string(text)
}

// port is where the replicas of a type listen.
func port(j *job.TrainingJob, t job.ReplicaType) int32 {
	template := j.Spec.Replicas[t].Template
	if c := trainer(&template.Spec); c != nil {
		for _, p := range c.Ports {
			if p.Name == job.PortName {
				return p.ContainerPort
			}
		}
	}
	return job.DefaultPort
}

// NewService is the Service of a replica, which gives it a name that outlives its Pod. It has no owner yet. Replicas find
// each other before they are ready, because most are not before they have.
func NewService(j *job.TrainingJob, r Replica) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: job.Name(j, r.Type, r.Index), Labels: Labels(j, r)},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: Labels(j, r), PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{Name: job.PortName, Port: port(j, r.Type)}},
		},
	}
}
