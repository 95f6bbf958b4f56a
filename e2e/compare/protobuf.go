package compare

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

const protobufType = "application/vnd.kubernetes.protobuf"

var (
	protobufTypes      = newProtobufTypes()
	protobufSerializer = protobuf.NewSerializer(protobufTypes, protobufTypes)
	watchSerializer    = protobuf.NewRawSerializer(protobufTypes, protobufTypes)
)

func newProtobufTypes() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, metav1.Unversioned)
	utilruntime.Must(metav1.AddMetaToScheme(s))
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// toProtobuf encodes an object that is written as JSON.
func toProtobuf(text []byte) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return nil, err
	}
	o, err := protobufTypes.New(meta.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, err
	}
	return runtime.Encode(protobufSerializer, o)
}

// fromProtobuf decodes an object into the form that its JSON has.
func fromProtobuf(content []byte) (any, error) {
	o, _, err := protobufSerializer.Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	return plain(o)
}

func plain(o any) (any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return readJSON(text, false)
}

// fromProtobufStream decodes the events of a watch. Each has its length before it, in four bytes.
func fromProtobufStream(content []byte) (any, error) {
	events := []any{}
	for len(content) > 0 {
		if len(content) < 4 {
			return nil, errors.New("compare: the stream ends within a length")
		}
		size := binary.BigEndian.Uint32(content)
		if uint64(len(content)) < 4+uint64(size) {
			return nil, fmt.Errorf("compare: the stream ends within an event of %d bytes", size)
		}
		var event metav1.WatchEvent
		if _, _, err := watchSerializer.Decode(content[4:4+size], nil, &event); err != nil {
			return nil, err
		}
		object, err := fromProtobuf(event.Object.Raw)
		if err != nil {
			return nil, err
		}
		events = append(events, map[string]any{"type": event.Type, "object": object})
		content = content[4+size:]
	}
	return slices.DeleteFunc(events, isPeriodicBookmark), nil
}
