package admission_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/cluster/internal/admission"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/internal/object"
)

func TestUnknownPlugin(t *testing.T) {
	_, err := admission.New(informers.New(), admission.Options{Disabled: []string{"none"}})
	require.ErrorContains(t, err, `admission: disable "none": the plugins are LimitRanger, ServiceAccount, `)
}

func TestPodsGetWhatPluginsAdd(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		require.Equal(t, `pods "a" is forbidden: error looking up service account default/default: serviceaccount "default" not found`,
			w.refused(403, pods, pod("a", "")))
		w.make(serviceAccounts, `{"metadata":{"name":"default"},"imagePullSecrets":[{"name":"pull"}]}`)
		w.make("/apis/scheduling.k8s.io/v1/priorityclasses", `{"metadata":{"name":"low"},"value":7,"globalDefault":true}`)
		spec := w.make(pods, pod("a", ""))["spec"]
		require.Equal(t, "default", at(t, spec, "serviceAccountName"))
		require.Equal(t, "pull", at(t, spec, "imagePullSecrets", 0, "name"))
		require.Equal(t, "/var/run/secrets/kubernetes.io/serviceaccount", at(t, spec, "containers", 0, "volumeMounts", 0, "mountPath"))
		require.Equal(t, at(t, spec, "volumes", 0, "name"), at(t, spec, "containers", 0, "volumeMounts", 0, "name"))
		require.EqualValues(t, 3607, at(t, spec, "volumes", 0, "projected", "sources", 0, "serviceAccountToken", "expirationSeconds"))
		require.Equal(t, "node.kubernetes.io/not-ready", at(t, spec, "tolerations", 0, "key"))
		require.EqualValues(t, 300, at(t, spec, "tolerations", 0, "tolerationSeconds"))
		require.EqualValues(t, 7, at(t, spec, "priority"))
		require.Equal(t, "low", at(t, spec, "priorityClassName"))
		require.Equal(t, `pods "b" is forbidden: no PriorityClass with name high was found`,
			w.refused(403, pods, `{"metadata":{"name":"b"},"spec":{"priorityClassName":"high","containers":[{"name":"c","image":"i"}]}}`))
	})
}

// TestSystemPriorityClassesStay deletes a class of the system, which needs no plugin to be refused.
func TestSystemPriorityClassesStay(t *testing.T) {
	inWorld(t, only(), func(w *world) {
		const classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
		w.make(classes, `{"metadata":{"name":"system-node-critical"},"value":2000001000,
			"description":"Used for system critical pods that must not be moved from their current node."}`)
		w.make(classes, `{"metadata":{"name":"mine"},"value":7}`)
		code, status, _ := w.send("DELETE", classes+"/system-node-critical", "")
		require.Equal(t, 403, code)
		require.Equal(t, `priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: `+
			"this is a system priority class and cannot be deleted", status["message"])
		code, _, _ = w.send("DELETE", classes+"/mine", "")
		require.Equal(t, 200, code)
	})
}

func TestDisabledPluginsDoNothing(t *testing.T) {
	inWorld(t, only(), func(w *world) {
		spec := w.make(pods, pod("a", ""))["spec"].(object.Tree)
		require.NotContains(t, spec, "tolerations")
		require.NotContains(t, spec, "priority")
		require.NotContains(t, spec, "volumes")
	})
}

func TestClaimsAndIngresses(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.make("/apis/storage.k8s.io/v1/storageclasses",
			`{"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"x"}`)
		w.make("/apis/networking.k8s.io/v1/ingressclasses",
			`{"metadata":{"name":"web","annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"x/y"}}`)
		claim := w.make("/api/v1/namespaces/default/persistentvolumeclaims",
			`{"metadata":{"name":"a"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
		require.Equal(t, "fast", at(t, claim, "spec", "storageClassName"))
		require.Equal(t, "kubernetes.io/pvc-protection", at(t, claim, "metadata", "finalizers", 0))
		ingress := w.make("/apis/networking.k8s.io/v1/namespaces/default/ingresses",
			`{"metadata":{"name":"a"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`)
		require.Equal(t, "web", at(t, ingress, "spec", "ingressClassName"))
	})
}

func TestLimitRange(t *testing.T) {
	inWorld(t, only("LimitRanger"), func(w *world) {
		w.make("/api/v1/namespaces/default/limitranges", `{"metadata":{"name":"l"},"spec":{"limits":[
			{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"},"max":{"cpu":"1"}}]}}`)
		a := w.make(pods, pod("a", ""))
		require.Equal(t, object.Tree{"limits": object.Tree{"cpu": "500m"}, "requests": object.Tree{"cpu": "100m"}},
			at(t, a, "spec", "containers", 0, "resources"))
		require.Equal(t, "LimitRanger plugin set: cpu request for container c; cpu limit for container c",
			at(t, a, "metadata", "annotations", "kubernetes.io/limit-ranger"))
		require.Equal(t, `pods "b" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
			w.refused(403, pods, pod("b", `,"resources":{"limits":{"cpu":"2"}}`)))
	})
}

func TestQuota(t *testing.T) {
	const quotas = "/api/v1/namespaces/default/resourcequotas"
	inWorld(t, only("ResourceQuota"), func(w *world) {
		used := func() any {
			synctest.Wait()
			_, q, _ := w.send("GET", quotas+"/q", "")
			return at(t, q, "status", "used")
		}
		w.make(configMaps, `{"metadata":{"name":"before"}}`)
		w.make(quotas, `{"metadata":{"name":"q"},"spec":{"hard":{"pods":"2","requests.cpu":"1","count/configmaps":"2"}}}`)
		require.Equal(t, object.Tree{"pods": "0", "requests.cpu": "0", "count/configmaps": "1"}, used())
		require.Equal(t, `pods "a" is forbidden: failed quota: q: must specify requests.cpu for: c`, w.refused(403, pods, pod("a", "")))
		half := `,"resources":{"requests":{"cpu":"500m"}}`
		w.make(pods, pod("a", half))
		require.Equal(t, object.Tree{"pods": "1", "requests.cpu": "500m", "count/configmaps": "1"}, used())
		require.Equal(t, `pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=500m, limited: requests.cpu=1`,
			w.refused(403, pods, pod("b", `,"resources":{"requests":{"cpu":"600m"}}`)))
		code, _, _ := w.send("POST", pods+"?dryRun=All", pod("b", half))
		require.Equal(t, 201, code)
		code, _, _ = w.send("POST", pods, pod("a", half))
		require.Equal(t, 409, code)
		<-timeAfterReservations()
		require.Equal(t, object.Tree{"pods": "1", "requests.cpu": "500m", "count/configmaps": "1"}, used(), "a write that failed counts for a second")
		w.make(configMaps, `{"metadata":{"name":"second"}}`)
		require.Equal(t, `configmaps "third" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2`,
			w.refused(403, configMaps, `{"metadata":{"name":"third"}}`))
		require.Equal(t, object.Tree{"pods": "1", "requests.cpu": "500m", "count/configmaps": "2"}, used())
		_, _, _ = w.send("DELETE", configMaps+"/second", "")
		_, _, _ = w.send("DELETE", pods+"/a?gracePeriodSeconds=0", "")
		require.Equal(t, object.Tree{"pods": "0", "requests.cpu": "0", "count/configmaps": "1"}, used())
	})
}

func TestConcurrentWritesDoNotExceedAQuota(t *testing.T) {
	inWorld(t, only("ResourceQuota"), func(w *world) {
		w.make("/api/v1/namespaces/default/resourcequotas", `{"metadata":{"name":"q"},"spec":{"hard":{"count/configmaps":"5"}}}`)
		synctest.Wait()
		codes := make(chan int, 20)
		for range cap(codes) {
			go func() {
				code, _, _ := w.send("POST", configMaps, `{"metadata":{"generateName":"c-"}}`)
				codes <- code
			}()
		}
		count := map[int]int{}
		for range cap(codes) {
			count[<-codes]++
		}
		require.Equal(t, map[int]int{201: 5, 403: 15}, count)
	})
}
