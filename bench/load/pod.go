package load

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// author writes the pod of one workload as a kube-apiserver would, with marks where replicas differ.
type author struct {
	*rand.Rand
	number                int
	app, tier, team, hash string
	namespace, image      string
	created               metav1.Time
}

var (
	nouns  = []string{"cart", "checkout", "ledger", "search", "profile", "billing", "catalog", "shipping", "session", "gateway", "pricing", "inventory"}
	roles  = []string{"api", "worker", "web", "proxy", "cron", "indexer"}
	tiers  = []string{"frontend", "backend", "data", "edge"}
	teams  = []string{"payments", "platform", "growth", "core", "logistics"}
	images = []string{"registry.example.com/shop/%s@sha256:%s", "ghcr.io/example-org/%s@sha256:%s", "eu.gcr.io/example-prod/%s@sha256:%s"}
	names  = []string{"DATABASE_URL", "LOG_LEVEL", "REGION", "FEATURE_FLAGS", "CACHE_ADDRESS", "TRACE_ENDPOINT", "QUEUE_NAME", "TIMEOUT_SECONDS", "MAX_CONNECTIONS", "RELEASE"}
)

func newAuthor(seed uint64, number int) *author {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	a := &author{Rand: r, number: number}
	a.app = fmt.Sprintf("%s-%s-%d", pick(r, nouns), pick(r, roles), number)
	a.tier, a.team, a.hash = pick(r, tiers), pick(r, teams), a.hex(10)
	a.namespace = fmt.Sprintf("%s-%d", a.team, r.IntN(40))
	a.image = fmt.Sprintf(pick(r, images), a.app, a.hex(12))
	a.created = metav1.Unix(1_760_000_000+int64(number)*977, 0)
	return a
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (a *author) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[a.IntN(16)]
	}
	return string(b)
}

func (a *author) after(d time.Duration) metav1.Time { return metav1.NewTime(a.created.Add(d)) }

// pod writes the whole pod, managedFields included.
func (a *author) pod() *corev1.Pod {
	containers := 1 + a.IntN(6)/5
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: a.metadata(),
		Spec:       a.spec(containers),
		Status:     a.status(containers),
	}
	pod.ManagedFields = managedFields(pod, a.created)
	return pod
}

func (a *author) metadata() metav1.ObjectMeta {
	yes := true
	m := metav1.ObjectMeta{
		GenerateName:      a.app + "-" + a.hash + "-",
		Name:              a.app + "-" + a.hash + "-" + placeholder(markName),
		Namespace:         a.namespace,
		UID:               types.UID(placeholder(markUID)),
		ResourceVersion:   placeholder(markVersion),
		CreationTimestamp: a.created,
		Labels: map[string]string{
			"app.kubernetes.io/name": a.app, "app.kubernetes.io/component": a.tier, "team": a.team, "pod-template-hash": a.hash,
		},
		Annotations: map[string]string{"kubectl.kubernetes.io/restartedAt": a.created.UTC().Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.app + "-" + a.hash, UID: types.UID(a.hex(36)),
			Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
	for i := range a.IntN(3) {
		m.Labels[fmt.Sprintf("example.com/%s-%d", pick(a.Rand, tiers), i)] = pick(a.Rand, nouns)
	}
	m.Annotations["checksum/config"] = a.hex(64)
	if a.IntN(2) == 0 {
		m.Annotations["k8s.v1.cni.cncf.io/network-status"] = fmt.Sprintf(`[{"name":"cluster-net","interface":"eth0","ips":["10.%s"],"mac":"0a:58:%s","default":true,"dns":{}}]`,
			placeholder(markIP), a.hex(8))
	}
	if a.IntN(3) == 0 {
		m.Annotations["prometheus.io/scrape"], m.Annotations["prometheus.io/port"] = "true", "9090"
	}
	return m
}

func (a *author) spec(containers int) corev1.PodSpec {
	seconds, yes, priority := int64(300), true, int32(0)
	preempt := corev1.PreemptLowerPriority
	s := corev1.PodSpec{
		NodeName: "node-" + placeholder(markNode), ServiceAccountName: a.app, DeprecatedServiceAccount: a.app,
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
		TerminationGracePeriodSeconds: new(int64), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes},
		EnableServiceLinks: &yes, Priority: &priority, PreemptionPolicy: &preempt,
		NodeSelector: map[string]string{"kubernetes.io/arch": pick(a.Rand, []string{"amd64", "arm64"})},
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
		},
		Volumes: a.volumes(),
	}
	*s.TerminationGracePeriodSeconds = 30
	for i := range containers {
		s.Containers = append(s.Containers, a.container(i, (2+a.IntN(4))/containers, s.Volumes))
	}
	return s
}

func (a *author) volumes() []corev1.Volume {
	mode, expiry := int32(0o644), int64(3607)
	volumes := []corev1.Volume{{Name: "kube-api-access-" + a.hex(5), VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expiry, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		}},
	}}}
	if a.IntN(2) == 0 {
		volumes = append(volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: a.app}, DefaultMode: &mode},
		}})
	}
	return volumes
}

func (a *author) container(i, variables int, volumes []corev1.Volume) corev1.Container {
	c := corev1.Container{
		Name: containerName(i), Image: a.containerImage(i), ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Env: a.env(variables),
	}
	if i == 0 {
		c.Resources = a.resources()
		c.Command = []string{"/usr/local/bin/" + a.app, "serve"}
		c.Args = []string{
			"--listen=:8080", "--config=/etc/" + a.app + "/config.yaml", "--log-format=json",
			"--upstream=https://" + pick(a.Rand, nouns) + "." + a.namespace + ".svc.cluster.local:8443", "--build=" + a.hex(40),
		}
		c.ReadinessProbe = a.probe("/readyz")
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	}
	for j, v := range volumes[:len(volumes)-i*(len(volumes)-1)] { // a sidecar has only the first volume
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: fmt.Sprintf("/mnt/%d", j), ReadOnly: j == 0})
	}
	return c
}

func containerName(i int) string { return []string{"app", "sidecar"}[i] }

func (a *author) containerImage(i int) string {
	return []string{a.image, "mesh/proxy:1.29." + fmt.Sprint(a.number%5)}[i]
}

func (a *author) resources() corev1.ResourceRequirements {
	quantities := func(cpu, memory int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
		}
	}
	cpu, memory := int64(50*(1+a.IntN(20))), int64(64*(1+a.IntN(32)))
	return corev1.ResourceRequirements{Requests: quantities(cpu, memory), Limits: quantities(2*cpu, 2*memory)}
}

// env has literal values, values of the pod itself, and values of secrets and config maps.
func (a *author) env(n int) []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
	}}}
	for _, at := range a.Perm(len(names))[:n] {
		v := corev1.EnvVar{Name: names[at]}
		switch a.IntN(4) {
		case 0:
			v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: a.app}, Key: fmt.Sprintf("key-%d", at),
			}}
		case 1:
			v.Value = fmt.Sprintf("https://%s.%s.svc.cluster.local:%d/%s", pick(a.Rand, nouns), a.namespace, 8000+a.IntN(1000), a.hex(6))
		case 2:
			v.Value = fmt.Sprintf("postgres://%s:5432/%s?sslmode=verify-full&sslrootcert=/etc/tls/ca.crt&pool_max_conns=%d",
				pick(a.Rand, nouns)+"-primary."+a.namespace+".svc", pick(a.Rand, nouns), 4+a.IntN(60))
		default:
			v.Value = fmt.Sprintf("%s-%d", pick(a.Rand, nouns), a.IntN(1000))
		}
		env = append(env, v)
	}
	return env
}

func (a *author) probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds:   1,
		PeriodSeconds:    int32(5 + a.IntN(10)),
		SuccessThreshold: 1,
		FailureThreshold: 3,
	}
}

func (a *author) status(containers int) corev1.PodStatus {
	ip := "10." + placeholder(markIP)
	hostIP := fmt.Sprintf("192.168.%d.%d", a.IntN(256), a.IntN(256))
	started := a.after(2 * time.Second)
	s := corev1.PodStatus{
		Phase: corev1.PodRunning,
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: hostIP, HostIPs: []corev1.HostIP{{IP: hostIP}},
		StartTime: &started, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 1,
	}
	for i, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: a.after(time.Duration(i) * time.Second)}
		if kind == corev1.PodReady {
			c.Message = "containers were restarted " + placeholder(markRestarts) + " times"
		}
		s.Conditions = append(s.Conditions, c)
	}
	if a.IntN(4) == 0 {
		s.Phase = corev1.PodPending
	}
	for i := range containers {
		s.ContainerStatuses = append(s.ContainerStatuses, a.containerStatus(i, s.Phase == corev1.PodRunning))
	}
	return s
}

func (a *author) containerStatus(i int, running bool) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: containerName(i), Image: a.containerImage(i), ImageID: "sha256:" + a.hex(64),
		ContainerID: "containerd://" + placeholder(markContainer), Ready: running, Started: &running,
	}
	if running {
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: a.after(time.Duration(4+i) * time.Second)}
	} else {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting"}
	}
	return s
}
