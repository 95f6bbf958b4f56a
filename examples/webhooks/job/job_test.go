package job_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/webhooks/job"
)

func valid() *job.TrainingJob {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: job.ContainerName, Image: "mnist:1"}}}}
	return &job.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "mnist"},
		Spec: job.Spec{Replicas: map[job.ReplicaType]job.ReplicaSpec{
			job.Chief: {Template: template}, job.PS: {Template: template}, job.Worker: {Template: template},
		}},
	}
}

func TestDefaults(t *testing.T) {
	j := valid()
	job.SetDefaults(j)
	require.Equal(t, job.Leader, j.Spec.SuccessPolicy)
	require.Equal(t, job.CleanRunning, j.Spec.CleanPodPolicy)
	require.Nil(t, j.Spec.BackoffLimit)
	for r := range j.Spec.Replicas {
		require.Equal(t, 1, job.Count(j, r), r)
		require.Equal(t, job.Never, j.Spec.Replicas[r].RestartPolicy, r)
	}
	require.Zero(t, job.Count(j, job.Evaluator))

	none := int32(0)
	j.Spec.SuccessPolicy, j.Spec.CleanPodPolicy = job.AllWorkers, job.CleanAll
	j.Spec.Replicas[job.PS] = job.ReplicaSpec{Replicas: &none, RestartPolicy: job.Always}
	before := api.Clone(j)
	job.SetDefaults(j)
	require.Equal(t, before, j)
}

func TestValidate(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	change := func(t job.ReplicaType, f func(*job.ReplicaSpec)) func(*job.TrainingJob) {
		return func(j *job.TrainingJob) {
			r := api.Clone(j.Spec.Replicas[t])
			f(&r)
			j.Spec.Replicas[t] = r
		}
	}
	for name, c := range map[string]struct {
		change func(*job.TrainingJob)
		says   []string // all errors; without them the job is valid
	}{
		"valid":        {func(*job.TrainingJob) {}, nil},
		"chief alone":  {func(j *job.TrainingJob) { delete(j.Spec.Replicas, job.PS); delete(j.Spec.Replicas, job.Worker) }, nil},
		"worker alone": {func(j *job.TrainingJob) { delete(j.Spec.Replicas, job.PS); delete(j.Spec.Replicas, job.Chief) }, nil},
		"no replicas":  {change(job.Worker, func(r *job.ReplicaSpec) { r.Replicas = number(0) }), nil},
		"nobody": {
			func(j *job.TrainingJob) { j.Spec.Replicas = nil },
			[]string{"spec.replicas: Required value: a chief, a master or a worker is needed"},
		},
		"only parameter servers": {
			func(j *job.TrainingJob) { delete(j.Spec.Replicas, job.Chief); delete(j.Spec.Replicas, job.Worker) },
			[]string{"spec.replicas: Required value: a chief, a master or a worker is needed"},
		},
		"two chiefs": {
			change(job.Chief, func(r *job.ReplicaSpec) { r.Replicas = number(2) }),
			[]string{"spec.replicas[chief].replicas: Invalid value: 2: must be 0 or 1 for chief"},
		},
		"master alone": {
			func(j *job.TrainingJob) {
				j.Spec.Replicas = map[job.ReplicaType]job.ReplicaSpec{job.Master: j.Spec.Replicas[job.Chief]}
			}, nil,
		},
		"two masters": {
			func(j *job.TrainingJob) {
				j.Spec.Replicas[job.Master] = j.Spec.Replicas[job.Chief]
				delete(j.Spec.Replicas, job.Chief)
				change(job.Master, func(r *job.ReplicaSpec) { r.Replicas = number(2) })(j)
			},
			[]string{"spec.replicas[master].replicas: Invalid value: 2: must be 0 or 1 for master"},
		},
		"a chief and a master": {
			func(j *job.TrainingJob) { j.Spec.Replicas[job.Master] = j.Spec.Replicas[job.Chief] },
			[]string{"spec.replicas[master]: Forbidden: a job has a chief or a master, not both"},
		},
		"evaluators": {
			func(j *job.TrainingJob) {
				j.Spec.Replicas[job.Evaluator] = j.Spec.Replicas[job.PS]
				change(job.Evaluator, func(r *job.ReplicaSpec) { r.Replicas = number(2) })(j)
			}, nil,
		},
		"only an evaluator": {
			func(j *job.TrainingJob) {
				j.Spec.Replicas = map[job.ReplicaType]job.ReplicaSpec{job.Evaluator: j.Spec.Replicas[job.Chief]}
			},
			[]string{"spec.replicas: Required value: a chief, a master or a worker is needed"},
		},
		"unknown type": {
			func(j *job.TrainingJob) { j.Spec.Replicas["boss"] = j.Spec.Replicas[job.Chief] },
			[]string{`spec.replicas[boss]: Unsupported value: "boss"`},
		},
		"too few":   {change(job.PS, func(r *job.ReplicaSpec) { r.Replicas = number(-1) }), []string{"spec.replicas[ps].replicas: Invalid value: -1"}},
		"too many":  {change(job.PS, func(r *job.ReplicaSpec) { r.Replicas = number(1001) }), []string{"spec.replicas[ps].replicas: Invalid value: 1001"}},
		"just many": {change(job.PS, func(r *job.ReplicaSpec) { r.Replicas = number(1000) }), nil},
		"policies": {
			func(j *job.TrainingJob) {
				j.Spec.SuccessPolicy, j.Spec.CleanPodPolicy = "Most", "Some"
				change(job.PS, func(r *job.ReplicaSpec) { r.RestartPolicy = "Sometimes" })(j)
			},
			[]string{"spec.successPolicy: ", "spec.cleanPodPolicy: ", "spec.replicas[ps].restartPolicy: "},
		},
		"numbers": {
			func(j *job.TrainingJob) {
				zero := int64(0)
				j.Spec.BackoffLimit, j.Spec.TTLSecondsAfterFinished, j.Spec.ActiveDeadlineSeconds = number(-1), number(-1), &zero
			},
			[]string{"spec.backoffLimit: ", "spec.ttlSecondsAfterFinished: ", "spec.activeDeadlineSeconds: "},
		},
		"no numbers": {
			func(j *job.TrainingJob) { j.Spec.BackoffLimit, j.Spec.TTLSecondsAfterFinished = number(0), number(0) }, nil,
		},
		"no container of that name": {
			change(job.PS, func(r *job.ReplicaSpec) { r.Template.Spec.Containers[0].Name = "main" }),
			[]string{`spec.replicas[ps].template.spec.containers: Required value: needs a container with the name "tensorflow"`},
		},
		"no image": {
			change(job.PS, func(r *job.ReplicaSpec) { r.Template.Spec.Containers[0].Image = "" }),
			[]string{"spec.replicas[ps].template.spec.containers[0].image: Required value"},
		},
		"name that a Service cannot have": {func(j *job.TrainingJob) { j.Name = "1-mnist" }, []string{
			`metadata.name: Invalid value: "1-mnist": "1-mnist-chief-0"`, `"1-mnist-ps-0"`, `"1-mnist-worker-0"`,
		}},
		"name that becomes too long": {
			func(j *job.TrainingJob) {
				j.Name = strings.Repeat("m", 63-len("-worker-99"))
				change(job.Worker, func(r *job.ReplicaSpec) { r.Replicas = number(101) })(j)
			},
			[]string{`-worker-100", the name of its last replica`},
		},
		"name that just fits": {
			func(j *job.TrainingJob) {
				j.Name = strings.Repeat("m", 63-len("-worker-99"))
				change(job.Worker, func(r *job.ReplicaSpec) { r.Replicas = number(100) })(j)
			}, nil,
		},
	} {
		j := valid()
		c.change(j)
		job.SetDefaults(j)
		err := job.Validate(j)
		if len(c.says) == 0 {
			require.NoError(t, err, name)
			continue
		}
		require.Error(t, err, name)
		errs, ok := err.(interface{ Errors() []error })
		require.True(t, ok)
		require.Len(t, errs.Errors(), len(c.says), "%s: %v", name, err)
		for _, text := range c.says {
			require.ErrorContains(t, err, text, name)
		}
	}
}

// TestDefinitionDeclaresEveryField looks for each field of the types in the schema, because a server drops undeclared
// fields.
func TestDefinitionDeclaresEveryField(t *testing.T) {
	var definition map[string]any
	require.NoError(t, yaml.UnmarshalStrict(job.Definition, &definition))
	version := at(t, definition, "spec", "versions").([]any)[0].(map[string]any)
	schema := at(t, version, "schema", "openAPIV3Schema", "properties").(map[string]any)
	require.Equal(t, job.Resource.Group, at(t, definition, "spec", "group"))
	require.Equal(t, job.Resource.Kind, at(t, definition, "spec", "names", "kind"))
	require.Equal(t, job.Resource.Version, version["name"])
	require.Contains(t, version["subresources"], "status")
	n := declared(t, "spec", reflect.TypeFor[job.Spec](), schema["spec"].(map[string]any)) +
		declared(t, "status", reflect.TypeFor[job.Status](), schema["status"].(map[string]any))
	require.Equal(t, 8+3+7+3+6, n, "fields of Spec, ReplicaSpec, Status, ReplicaStatus and Condition")
}

func at(t *testing.T, m map[string]any, path ...string) any {
	t.Helper()
	var v any = m
	for _, name := range path {
		m, ok := v.(map[string]any)
		require.True(t, ok, "%s of %s", name, path)
		v = m[name]
	}
	return v
}

// declared counts the fields of a type. The schema must declare all of them.
func declared(t *testing.T, path string, of reflect.Type, schema map[string]any) (n int) {
	t.Helper()
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		return 0
	}
	switch of.Kind() {
	case reflect.Pointer:
		return declared(t, path, of.Elem(), schema)
	case reflect.Slice:
		require.Equal(t, "array", schema["type"], path)
		return declared(t, path, of.Elem(), schema["items"].(map[string]any))
	case reflect.Map:
		require.Equal(t, "object", schema["type"], path)
		return declared(t, path, of.Elem(), schema["additionalProperties"].(map[string]any))
	case reflect.Struct:
		if of == reflect.TypeFor[metav1.Time]() {
			require.Equal(t, "date-time", schema["format"], path)
			return 0
		}
		properties, _ := schema["properties"].(map[string]any)
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			require.Contains(t, properties, name, path)
			n += 1 + declared(t, path+"."+name, of.Field(i).Type, properties[name].(map[string]any))
		}
		require.Len(t, properties, of.NumField(), "%s: the schema has other fields", path)
		return n
	default:
		types := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer", reflect.Int64: "integer"}
		require.Equal(t, types[of.Kind()], schema["type"], path)
		return 0
	}
}
