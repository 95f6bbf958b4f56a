package load

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Seed is that of the set which published figures are of.
const Seed = 2026

const (
	// Workloads is how many different pods there are; the others are replicas of them. In a set of 50,000 pods each
	// workload has twenty replicas.
	Workloads = 2500
	// Nodes is how many nodes the pods run on.
	Nodes = 1000
)

// Form is how a pod is written.
type Form int

// The forms that a server sends pods in. A pod in a list has no kind of its own, a pod in a watch has one; metadata
// always has one, as kube-apiserver writes it.
const (
	JSON Form = iota
	JSONInList
	Protobuf // the bare message
	MetadataJSON
	MetadataProtobuf
	forms
)

// path is the form "namespace/name", which is sent nowhere.
const path = forms

// Set is an endless sequence of pods.
type Set struct {
	workloads []workload
}

// workload is one pod in all forms.
type workload [forms + 1]template

type template struct {
	bytes []byte
	marks []mark
}

// NewSet makes the pods of a seed, from as many workloads. It takes a second for those of the fixed set.
func NewSet(seed uint64, workloads int) *Set {
	s := &Set{workloads: make([]workload, workloads)}
	for i := range s.workloads {
		s.workloads[i] = encode(newAuthor(seed, i).pod())
	}
	return s
}

func encode(pod *corev1.Pod) workload {
	metadata := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
		ObjectMeta: pod.ObjectMeta,
	}
	bare := *pod
	bare.TypeMeta = metav1.TypeMeta{}
	return workload{
		JSON:             newTemplate(json.Marshal(pod)),
		JSONInList:       newTemplate(json.Marshal(&bare)),
		Protobuf:         newTemplate(pod.Marshal()),
		MetadataJSON:     newTemplate(json.Marshal(metadata)),
		MetadataProtobuf: newTemplate(metadata.Marshal()),
		path:             newTemplate([]byte(pod.Namespace+"/"+pod.Name), nil),
	}
}

func newTemplate(encoded []byte, err error) template {
	if err != nil {
		panic("load: " + err.Error()) // what is encoded was made here
	}
	return template{bytes: slices.Clip(encoded), marks: findMarks(encoded)}
}

func (s *Set) template(f Form, i int) *template { return &s.workloads[i%len(s.workloads)][f] }

// Size is the number of bytes of pod i in a form, in whatever state.
func (s *Set) Size(f Form, i int) int { return len(s.template(f, i).bytes) }

// Order returns the first n pods in the order of their keys in etcd, in which kube-apiserver lists them.
func (s *Set) Order(n int) []int {
	paths, order := make([]string, n), make([]int, n)
	var b []byte
	for i := range order {
		b = s.Append(b[:0], path, i, State{})
		paths[i], order[i] = string(b), i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(paths[a], paths[b]) })
	return order
}

// Append writes pod i, counted from 0, in a form and a state.
func (s *Set) Append(dst []byte, f Form, i int, state State) []byte {
	t := s.template(f, i)
	from := len(dst)
	dst = append(dst, t.bytes...)
	for _, m := range t.marks {
		m.fill(dst[from+int(m.at):], i, state)
	}
	return dst
}
