package load

import (
	"encoding/json"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Seed is the seed of the published figures.
const Seed = 2026

const (
	// Workloads is the number of different pods; all others are replicas of them. In a set of 50,000 pods, each
	// workload has twenty replicas.
	Workloads = 2500
	// Nodes is the number of nodes.
	Nodes = 1000
)

// Form is an encoding of a pod.
type Form int

// The forms of pods in answers. As in kube-apiserver, a pod has its kind in a watch and not in a list, and metadata
// always has it.
const (
	JSON Form = iota
	JSONInList
	Protobuf // the bare message
	MetadataJSON
	MetadataProtobuf
	forms
)

// These forms are not sent: path is "namespace/name", for the order of keys, and uid is the UID, for shards.
const (
	path = forms + iota
	uid
	all
)

// Set is an endless sequence of pods.
type Set struct {
	workloads []workload
}

// workload is one pod in all forms.
type workload [all]template

type template struct {
	bytes []byte
	marks []mark
}

// NewSet generates the pods of a seed from a number of workloads. The published set takes a second.
func NewSet(seed uint64, workloads int) *Set {
	s := &Set{workloads: make([]workload, workloads)}
	for i := range s.workloads {
		s.workloads[i] = encode(newAuthor(seed, i).pod())
	}
	return s
}

// NewFreshSet generates the same pods, in which each version changes every text: the values of all fields and maps,
// except the name, the namespace and the UID. Nothing of a pod is equal to anything that came before.
func NewFreshSet(seed uint64, workloads int) *Set {
	s := &Set{workloads: make([]workload, workloads)}
	for i := range s.workloads {
		pod := newAuthor(seed, i).pod()
		name, namespace, id, version := pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion
		freshen(reflect.ValueOf(pod).Elem())
		pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion = name, namespace, id, version
		pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		s.workloads[i] = encode(pod)
	}
	return s
}

// freshen appends a mark to each text below a value.
func freshen(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.Len() > 0 {
			v.SetString(v.String() + placeholder(markFresh))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			freshen(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			freshen(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if value := v.MapIndex(key); value.Kind() == reflect.String {
				v.SetMapIndex(key, reflect.ValueOf(value.String()+placeholder(markFresh)).Convert(value.Type()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				freshen(v.Field(i))
			}
		}
	}
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
		uid:              newTemplate([]byte(pod.UID), nil),
	}
}

func newTemplate(encoded []byte, err error) template {
	if err != nil {
		panic("load: " + err.Error()) // the pods were generated here, so they can be encoded
	}
	return template{bytes: slices.Clip(encoded), marks: findMarks(encoded)}
}

func (s *Set) template(f Form, i int) *template { return &s.workloads[i%len(s.workloads)][f] }

// Size returns the number of bytes of pod i in a form. It does not depend on the state.
func (s *Set) Size(f Form, i int) int { return len(s.template(f, i).bytes) }

// Order returns the first n pods in the order of their keys in etcd, which is the order of kube-apiserver's lists.
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

// Hashes returns the hashes of the UIDs of the first n pods, by which KEP-5866 divides them into shards: FNV-1a.
func (s *Set) Hashes(n int) []uint64 {
	hashes := make([]uint64, n)
	var b []byte
	for i := range hashes {
		b = s.Append(b[:0], uid, i, State{})
		h := fnv.New64a()
		_, _ = h.Write(b) // never fails
		hashes[i] = h.Sum64()
	}
	return hashes
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
