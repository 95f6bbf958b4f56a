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

// Labels returns the labels that identify the objects of a replica.
func Labels(j *job.TrainingJob, r Replica) map[string]string {
	return map[string]string{job.LabelJob: j.Name, job.LabelType: string(r.Type), job.LabelIndex: strconv.Itoa(r.Index)}
}

// NewPod returns the Pod of a replica, without an owner.
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

// podPolicy returns the restart policy for the kubelet. The kubelet cannot know which exit codes are worth a retry.
func podPolicy(p job.RestartPolicy) corev1.RestartPolicy {
	if p == job.ExitCode {
		return corev1.RestartPolicyNever
	}
	return corev1.RestartPolicy(p)
}

// trainer returns the training container.
func trainer(s *corev1.PodSpec) *corev1.Container {
	at := slices.IndexFunc(s.Containers, func(c corev1.Container) bool { return c.Name == job.ContainerName })
	if at < 0 {
		return nil
	}
	return &s.Containers[at]
}

// equip adds the port and TF_CONFIG to the training container. A job of one replica needs no TF_CONFIG, and a TF_CONFIG
// of the template stays.
func equip(c *corev1.Container, j *job.TrainingJob, r Replica) {
	if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == job.PortName }) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: job.PortName, ContainerPort: job.DefaultPort, Protocol: corev1.ProtocolTCP})
	}
	own := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == configVariable })
	if !own && (len(wanted(j)) > 1 || j.Spec.EnableDynamicWorker) {
		c.Env = append(c.Env, corev1.EnvVar{Name: configVariable, Value: config(j, r)})
	}
}

// configVariable is the environment variable from which TensorFlow reads its place in the cluster
// (tf.distribute.cluster_resolver.TFConfigClusterResolver).
const configVariable = "TF_CONFIG"

// task is a replica in TF_CONFIG.
type task struct {
	Type  job.ReplicaType `json:"type"`
	Index int             `json:"index"`
}

// config returns the TF_CONFIG of a replica: the cluster, and the replica's place in it.
func config(j *job.TrainingJob, r Replica) string {
	if j.Spec.EnableDynamicWorker {
		return text(struct {
			Cluster sparse `json:"sparseCluster"`
			Task    task   `json:"task"`
		}{sparseCluster(j, r), task(r)})
	}
	return text(struct {
		Cluster     map[job.ReplicaType][]string `json:"cluster"`
		Task        task                         `json:"task"`
		Environment string                       `json:"environment"`
	}{cluster(j), task(r), "cloud"})
}

func text(config any) string {
	b, err := json.Marshal(config)
	if err != nil {
		panic(err) // strings and numbers are always valid JSON
	}
	return string(b)
}

// cluster returns the addresses of all replicas except evaluators, which TensorFlow does not count as part of the
// cluster.
func cluster(j *job.TrainingJob) map[job.ReplicaType][]string {
	all := map[job.ReplicaType][]string{}
	for _, r := range wanted(j) {
		if r.Type != job.Evaluator {
			all[r.Type] = append(all[r.Type], address(j, r))
		}
	}
	return all
}

// sparse is the cluster of a replica that does not know all workers.
type sparse struct {
	Worker map[int]string `json:"worker"` // by index
	PS     []string       `json:"ps"`
}

// sparseCluster returns the cluster of a replica in a job with dynamic workers. A parameter server has itself, a worker
// has itself and the parameter servers, and any other replica has the parameter servers.
func sparseCluster(j *job.TrainingJob, r Replica) sparse {
	if r.Type == job.PS {
		return sparse{Worker: map[int]string{}, PS: []string{address(j, r)}}
	}
	s := sparse{Worker: map[int]string{}, PS: append([]string{}, cluster(j)[job.PS]...)}
	if r.Type == job.Worker {
		s.Worker[r.Index] = address(j, r)
	}
	return s
}

// address returns the name of a replica's Service, and its port.
func address(j *job.TrainingJob, r Replica) string {
	host := job.Name(j, r.Type, r.Index) + "." + j.Namespace + ".svc"
	return net.JoinHostPort(host, strconv.Itoa(int(port(j, r.Type))))
}

// port returns the port on which the replicas of a type listen.
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

// NewService returns the Service of a replica, without an owner. It gives the replica a name that stays when its Pod is
// replaced. The Service also publishes Pods that are not ready, because most replicas need the others to become ready.
func NewService(j *job.TrainingJob, r Replica) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: job.Name(j, r.Type, r.Index), Labels: Labels(j, r)},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: Labels(j, r), PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{Name: job.PortName, Port: port(j, r.Type)}},
		},
	}
}
