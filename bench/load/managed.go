package load

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managedFields returns the managedFields that a kube-apiserver would write: the controller owns the spec, the kubelet
// owns the status.
func managedFields(pod *corev1.Pod, at metav1.Time) []metav1.ManagedFieldsEntry {
	encoded, err := json.Marshal(pod)
	if err != nil {
		panic("load: " + err.Error()) // a pod can be encoded
	}
	var content map[string]any
	if err := json.Unmarshal(encoded, &content); err != nil {
		panic("load: " + err.Error())
	}
	metadata, spec, status := content["metadata"].(map[string]any), content["spec"].(map[string]any), content["status"].(map[string]any)
	for _, assigned := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		delete(metadata, assigned)
	}
	for _, assigned := range []string{"nodeName", "tolerations", "volumes", "priority", "preemptionPolicy", "serviceAccount"} {
		delete(spec, assigned) // owned by the scheduler or by admission, or without a list key
	}
	for _, assigned := range []string{"qosClass", "observedGeneration", "hostIPs"} {
		delete(status, assigned)
	}
	conditions := status["conditions"].([]any)
	status["conditions"] = conditions[:len(conditions)-1] // the scheduler owns PodScheduled
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", at, map[string]any{"metadata": metadata, "spec": spec}),
		entry("kubelet", "status", at, map[string]any{"status": status}),
	}
}

func entry(manager, subresource string, at metav1.Time, content map[string]any) metav1.ManagedFieldsEntry {
	fields, err := json.Marshal(owned(content))
	if err != nil {
		panic("load: " + err.Error())
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)), Subresource: subresource,
	}
}

// listKeys are the members that identify an item of a list. The first one that an item has counts.
var listKeys = []string{"mountPath", "containerPort", "type", "ip", "uid", "name"}

// atomic are the members that are owned as a whole.
var atomic = []string{"fieldRef", "secretKeyRef", "nodeSelector"}

// owned returns a value in the form of FieldsV1: "f:" before names of members, "k:" before keys of items.
func owned(value any) any {
	fields := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if slices.Contains(atomic, name) {
				member = nil
			}
			fields["f:"+name] = owned(member)
		}
	case []any:
		for _, item := range value {
			key, keyed := itemKey(item)
			if !keyed {
				return map[string]any{} // a list that is owned as a whole
			}
			of := map[string]any{}
			if !strings.HasPrefix(key, `k:{"uid"`) { // an owner is owned as a whole
				of = owned(item).(map[string]any)
				of["."] = map[string]any{}
			}
			fields[key] = of
		}
	}
	return fields
}

func itemKey(item any) (string, bool) {
	content, isMap := item.(map[string]any)
	if !isMap {
		return "", false
	}
	at := slices.IndexFunc(listKeys, func(name string) bool { return content[name] != nil })
	if at < 0 {
		return "", false
	}
	key := map[string]any{listKeys[at]: content[listKeys[at]]}
	if listKeys[at] == "containerPort" {
		key["protocol"] = content["protocol"]
	}
	encoded, err := json.Marshal(key)
	if err != nil {
		panic("load: " + err.Error())
	}
	return fmt.Sprintf("k:%s", encoded), true
}
