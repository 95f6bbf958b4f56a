package builtin

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
	"k8s.io/utils/clock"
)

// groups returns the table of built-in resources. kube-apiserver 1.37 serves exactly these with default settings,
// besides CustomResourceDefinitions.
func groups() []group {
	v1 := []string{"v1"}
	return []group{
		{"", v1, coreResources()},
		{apiregistration.GroupName, v1, []row{{
			kind: "APIService", plural: "apiservices", category: "api-extensions",
			strategy: apiservice.NewStrategy(legacyscheme.Scheme), status: apiservice.NewStatusStrategy(legacyscheme.Scheme),
		}}},
		{"apps", v1, appsResources()},
		{"events.k8s.io", v1, []row{{
			kind: "Event", plural: "events", strategy: event.Strategy, short: "ev", fields: eventFields(),
			alias: schema.GroupResource{Resource: "events"},
		}}},
		{"authentication.k8s.io", v1, []row{
			{kind: "SelfSubjectReview", plural: "selfsubjectreviews", cluster: true, verbs: createVerb},
			{kind: "TokenReview", plural: "tokenreviews", cluster: true, verbs: createVerb},
		}},
		{"authorization.k8s.io", v1, []row{
			{kind: "LocalSubjectAccessReview", plural: "localsubjectaccessreviews", verbs: createVerb},
			{kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", cluster: true, verbs: createVerb},
			{kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", cluster: true, verbs: createVerb},
			{kind: "SubjectAccessReview", plural: "subjectaccessreviews", cluster: true, verbs: createVerb},
		}},
		{"autoscaling", []string{"v2", "v1"}, []row{{
			kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers", short: "hpa", category: "all",
			strategy: horizontalpodautoscaler.Strategy, status: horizontalpodautoscaler.StatusStrategy, converted: true,
		}}},
		{"batch", v1, []row{
			{
				kind: "CronJob", plural: "cronjobs", short: "cj", category: "all",
				strategy: cronjob.Strategy, status: cronjob.StatusStrategy,
			},
			{
				kind: "Job", plural: "jobs", category: "all", strategy: job.Strategy, status: job.StatusStrategy,
				fields: []selectable{{"status.successful", "status.succeeded", "0"}},
			},
		}},
		{"certificates.k8s.io", v1, certificateResources()},
		{"networking.k8s.io", v1, networkingResources()},
		{"policy", v1, []row{{
			kind: "PodDisruptionBudget", plural: "poddisruptionbudgets", short: "pdb",
			strategy: poddisruptionbudget.Strategy, status: poddisruptionbudget.StatusStrategy,
		}}},
		{"rbac.authorization.k8s.io", v1, []row{
			{kind: "ClusterRoleBinding", plural: "clusterrolebindings", strategy: clusterrolebinding.Strategy},
			{kind: "ClusterRole", plural: "clusterroles", strategy: clusterrole.Strategy},
			{kind: "RoleBinding", plural: "rolebindings", strategy: rolebinding.Strategy},
			{kind: "Role", plural: "roles", strategy: role.Strategy},
		}},
		{"storage.k8s.io", v1, storageResources()},
		{"admissionregistration.k8s.io", v1, admissionResources()},
		{"scheduling.k8s.io", v1, []row{
			{kind: "PriorityClass", plural: "priorityclasses", short: "pc", strategy: priorityclass.Strategy},
		}},
		{"coordination.k8s.io", v1, []row{{kind: "Lease", plural: "leases", strategy: lease.Strategy}}},
		{"node.k8s.io", v1, []row{{kind: "RuntimeClass", plural: "runtimeclasses", strategy: runtimeclass.Strategy}}},
		{"discovery.k8s.io", v1, []row{{kind: "EndpointSlice", plural: "endpointslices", strategy: endpointslice.Strategy}}},
		{"resource.k8s.io", v1, deviceResources()},
		{"flowcontrol.apiserver.k8s.io", v1, []row{
			{
				kind: "FlowSchema", plural: "flowschemas",
				strategy: flowschema.Strategy, status: flowschema.StatusStrategy,
			},
			{
				kind: "PriorityLevelConfiguration", plural: "prioritylevelconfigurations",
				strategy: prioritylevelconfiguration.Strategy, status: prioritylevelconfiguration.StatusStrategy,
			},
		}},
		{"storagemigration.k8s.io", v1, []row{{
			kind: "StorageVersionMigration", plural: "storageversionmigrations",
			strategy: storagemigration.Strategy, status: storagemigration.StatusStrategy,
		}}},
	}
}

func coreResources() []row {
	return []row{
		{kind: "Binding", plural: "bindings", verbs: createVerb},
		{kind: "ComponentStatus", plural: "componentstatuses", short: "cs", cluster: true, verbs: metav1.Verbs{"get", "list"}, missing: "componentstatus"},
		{kind: "ConfigMap", plural: "configmaps", short: "cm", strategy: configmap.Strategy},
		{kind: "Endpoints", plural: "endpoints", short: "ep", strategy: endpoint.Strategy},
		{kind: "Event", plural: "events", short: "ev", strategy: event.Strategy, fields: eventFields()},
		{kind: "LimitRange", plural: "limitranges", short: "limits", strategy: limitrange.Strategy},
		{
			kind: "Namespace", plural: "namespaces", short: "ns", strategy: namespace.Strategy, status: namespace.StatusStrategy,
			parts:  []part{{"finalize", namespace.FinalizeStrategy, metav1.Verbs{"update"}}},
			fields: append(plain("status.phase"), selectable{"name", "metadata.name", ""}), returned: true,
		},
		{
			kind: "Node", plural: "nodes", short: "no", strategy: node.Strategy, status: node.StatusStrategy, converted: true,
			actions: []action{{name: "proxy", kind: "NodeProxyOptions", verbs: proxyVerbs}},
			fields:  []selectable{{"spec.unschedulable", "", "false"}},
		},
		{
			kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims", short: "pvc", returned: true,
			strategy: persistentvolumeclaim.Strategy, status: persistentvolumeclaim.StatusStrategy,
			fields: []selectable{{"name", "metadata.name", ""}},
		},
		{
			kind: "PersistentVolume", plural: "persistentvolumes", short: "pv", returned: true,
			strategy: persistentvolume.Strategy, status: persistentvolume.StatusStrategy,
			fields: []selectable{{"name", "metadata.name", ""}},
		},
		podResource(),
		{kind: "PodTemplate", plural: "podtemplates", strategy: podtemplate.Strategy, returned: true},
		{
			kind: "ReplicationController", plural: "replicationcontrollers", short: "rc", category: "all",
			strategy: replicationcontroller.Strategy, status: replicationcontroller.StatusStrategy,
			actions: []action{scale}, fields: []selectable{{"status.replicas", "", "0"}},
		},
		{
			kind: "ResourceQuota", plural: "resourcequotas", short: "quota", returned: true,
			strategy: resourcequota.Strategy, status: resourcequota.StatusStrategy,
		},
		{kind: "Secret", plural: "secrets", strategy: secret.Strategy, fields: plain("type")},
		{
			kind: "ServiceAccount", plural: "serviceaccounts", short: "sa", strategy: serviceaccount.Strategy, returned: true,
			actions: []action{{
				name: "token", kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: createVerb,
			}},
		},
		{
			kind: "Service", plural: "services", short: "svc", category: "all", returned: true,
			strategy: service.Strategy, status: service.StatusStrategy,
			actions: []action{{name: "proxy", kind: "ServiceProxyOptions", verbs: proxyVerbs}},
			fields:  plain("spec.clusterIP", "spec.type"),
			claims:  func() beginner { return newServices() },
		},
	}
}

func podResource() row {
	return row{
		kind: "Pod", plural: "pods", short: "po", category: "all", returned: true, graceful: true,
		strategy: pod.Strategy, status: pod.StatusStrategy,
		parts: []part{
			{"ephemeralcontainers", pod.EphemeralContainersStrategy, viewVerbs},
			{"resize", pod.ResizeStrategy, viewVerbs},
		},
		actions: []action{
			{name: "attach", kind: "PodAttachOptions", verbs: streamVerbs},
			{name: bindingName, kind: "Binding", verbs: createVerb},
			{name: "eviction", kind: "Eviction", group: "policy", version: "v1", verbs: createVerb},
			{name: "exec", kind: "PodExecOptions", verbs: streamVerbs},
			{name: "log", verbs: metav1.Verbs{"get"}},
			{name: "portforward", kind: "PodPortForwardOptions", verbs: streamVerbs},
			{name: "proxy", kind: "PodProxyOptions", verbs: proxyVerbs},
		},
		fields: append(plain("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
			"status.phase", "status.podIP", "status.nominatedNodeName"), selectable{"spec.hostNetwork", "", "false"}),
	}
}

func eventFields() []selectable {
	return append(plain("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
		"reportingComponent", "type"), selectable{"source", "source.component|reportingComponent", ""})
}

func appsResources() []row {
	return []row{
		{kind: "ControllerRevision", plural: "controllerrevisions", raw: true, strategy: controllerrevision.Strategy},
		{
			kind: "DaemonSet", plural: "daemonsets", short: "ds", category: "all",
			strategy: daemonset.Strategy, status: daemonset.StatusStrategy, converted: true,
		},
		{
			kind: "Deployment", plural: "deployments", short: "deploy", category: "all",
			strategy: deployment.Strategy, status: deployment.StatusStrategy, actions: []action{scale},
		},
		{
			kind: "ReplicaSet", plural: "replicasets", short: "rs", category: "all",
			strategy: replicaset.Strategy, status: replicaset.StatusStrategy, actions: []action{scale},
			fields: []selectable{{"status.replicas", "", "0"}},
		},
		{
			kind: "StatefulSet", plural: "statefulsets", short: "sts", category: "all",
			strategy: statefulset.Strategy, status: statefulset.StatusStrategy, actions: []action{scale}, converted: true,
		},
	}
}

func certificateResources() []row {
	podCertificates := podcertificaterequest.NewStrategy()
	return []row{
		{
			kind: "CertificateSigningRequest", plural: "certificatesigningrequests", short: "csr",
			strategy: certificates.Strategy, status: certificates.StatusStrategy,
			parts:  []part{{"approval", certificates.ApprovalStrategy, viewVerbs}},
			fields: plain("spec.signerName"),
		},
		{
			kind: "ClusterTrustBundle", plural: "clustertrustbundles", strategy: clustertrustbundle.Strategy,
			fields: plain("spec.signerName"),
		},
		{
			kind: "PodCertificateRequest", plural: "podcertificaterequests", strategy: podCertificates,
			status: podcertificaterequest.NewStatusStrategy(podCertificates, allowed{}, clock.RealClock{}),
			fields: plain("spec.signerName", "spec.podName", "spec.nodeName"),
		},
	}
}

func networkingResources() []row {
	return []row{
		{kind: "IngressClass", plural: "ingressclasses", strategy: ingressclass.Strategy},
		{
			kind: "Ingress", plural: "ingresses", short: "ing",
			strategy: ingress.Strategy, status: ingress.StatusStrategy,
		},
		{kind: "IPAddress", plural: "ipaddresses", short: "ip", strategy: ipaddress.Strategy},
		{kind: "NetworkPolicy", plural: "networkpolicies", short: "netpol", strategy: networkpolicy.Strategy},
		{
			kind: "ServiceCIDR", plural: "servicecidrs",
			strategy: servicecidr.Strategy, status: servicecidr.StatusStrategy,
		},
	}
}

func storageResources() []row {
	return []row{
		{kind: "CSIDriver", plural: "csidrivers", strategy: csidriver.Strategy, returned: true},
		{kind: "CSINode", plural: "csinodes", strategy: csinode.Strategy, status: csinode.StatusStrategy, returned: true},
		{kind: "CSIStorageCapacity", plural: "csistoragecapacities", strategy: csistoragecapacity.Strategy},
		{kind: "StorageClass", plural: "storageclasses", short: "sc", strategy: storageclass.Strategy, returned: true},
		{
			kind: "VolumeAttachment", plural: "volumeattachments", returned: true,
			strategy: volumeattachment.Strategy, status: volumeattachment.StatusStrategy,
		},
		{
			kind: "VolumeAttributesClass", plural: "volumeattributesclasses", short: "vac", returned: true,
			strategy: volumeattributesclass.Strategy,
		},
	}
}

func admissionResources() []row {
	const category = "api-extensions"
	policies := validatingadmissionpolicy.NewStrategy(nil, anyResource)
	return []row{
		{
			kind: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolicies", category: category,
			strategy: mutatingadmissionpolicy.NewStrategy(nil, anyResource),
		},
		{
			kind: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings", category: category,
			strategy: mutatingadmissionpolicybinding.NewStrategy(nil, nil, anyResource),
		},
		{
			kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations", category: category,
			strategy: mutatingwebhookconfiguration.Strategy,
		},
		{
			kind: "ValidatingAdmissionPolicy", plural: "validatingadmissionpolicies", category: category,
			strategy: policies, status: validatingadmissionpolicy.NewStatusStrategy(policies),
		},
		{
			kind: "ValidatingAdmissionPolicyBinding", plural: "validatingadmissionpolicybindings", category: category,
			strategy: validatingadmissionpolicybinding.NewStrategy(nil, nil, anyResource),
		},
		{
			kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations", category: category,
			strategy: validatingwebhookconfiguration.Strategy,
		},
	}
}

func deviceResources() []row {
	claims := resourceclaim.NewStrategy(adminNamespaces{}, allowed{})
	return []row{
		{kind: "DeviceClass", plural: "deviceclasses", raw: true, strategy: deviceclass.Strategy, returned: true},
		{
			kind: "DeviceTaintRule", plural: "devicetaintrules",
			strategy: devicetaintrule.Strategy, status: devicetaintrule.StatusStrategy,
		},
		{
			kind: "ResourceClaim", plural: "resourceclaims", returned: true, raw: true,
			strategy: claims, status: resourceclaim.NewStatusStrategy(claims),
		},
		{
			kind: "ResourceClaimTemplate", plural: "resourceclaimtemplates", returned: true, raw: true,
			strategy: resourceclaimtemplate.NewStrategy(adminNamespaces{}),
		},
		{
			kind: "ResourceSlice", plural: "resourceslices", strategy: resourceslice.Strategy, returned: true,
			fields: plain("spec.nodeName", "spec.driver", "spec.pool.name"),
		},
	}
}
