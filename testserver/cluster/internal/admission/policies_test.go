package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/object"
)

const forConfigMaps = `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE","UPDATE"]}]}`

func TestValidatingPolicy(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionPolicy"), func(w *world) {
		w.make(configurations+"validatingadmissionpolicies", `{"metadata":{"name":"short"},"spec":{`+forConfigMaps+`,
			"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},
			"variables":[{"name":"length","expression":"size(object.data.a)"}],
			"matchConditions":[{"name":"has","expression":"has(object.data) && has(object.data.a)"}],
			"validations":[{"expression":"variables.length <= int(params.data.limit)",
				"messageExpression":"'too long: ' + string(variables.length)","reason":"Invalid"}]}}`)
		w.make(configMaps, `{"metadata":{"name":"limits"},"data":{"limit":"3"}}`)
		w.make(configMaps, `{"metadata":{"name":"unbound"},"data":{"a":"12345"}}`)
		w.make(configurations+"validatingadmissionpolicybindings", `{"metadata":{"name":"short"},"spec":{"policyName":"short",
			"paramRef":{"name":"limits","namespace":"default","parameterNotFoundAction":"Deny"},"validationActions":["Deny"]}}`)
		w.make(configMaps, `{"metadata":{"name":"a"},"data":{"a":"123"}}`)
		w.make(configMaps, `{"metadata":{"name":"b"},"data":{"b":"12345"}}`)
		require.Equal(t, `configmaps "c" is forbidden: ValidatingAdmissionPolicy 'short' with binding 'short' denied request: too long: 4`,
			w.refused(422, configMaps, `{"metadata":{"name":"c"},"data":{"a":"1234"}}`))
		_, _, _ = w.send("PATCH", configMaps+"/limits", `{"data":{"limit":"9"}}`)
		w.make(configMaps, `{"metadata":{"name":"c"},"data":{"a":"1234"}}`)
		_, _, _ = w.send("DELETE", configMaps+"/limits", "")
		require.Contains(t, w.refused(422, configMaps, `{"metadata":{"name":"d"},"data":{"a":"1"}}`), "no params found for policy binding with `Deny` parameterNotFoundAction")
	})
}

func TestPoliciesThatWarn(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionPolicy"), func(w *world) {
		w.make(configurations+"validatingadmissionpolicies", `{"metadata":{"name":"warn"},"spec":{`+forConfigMaps+`,
			"validations":[{"expression":"object.metadata.name != 'bad'","message":"a bad name"}]}}`)
		w.make(configurations+"validatingadmissionpolicybindings",
			`{"metadata":{"name":"warn"},"spec":{"policyName":"warn","validationActions":["Warn"]}}`)
		code, _, warnings := w.send("POST", configMaps, configMap("bad"))
		require.Equal(t, 201, code)
		require.Equal(t, []string{`299 - "Validation failed for ValidatingAdmissionPolicy 'warn' with binding 'warn': a bad name"`}, warnings)
	})
}

func TestPolicyErrors(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionPolicy"), func(w *world) {
		for _, failure := range []string{"Fail", "Ignore"} {
			w.make(configurations+"validatingadmissionpolicies", `{"metadata":{"name":"p"},"spec":{"failurePolicy":"`+failure+`",`+forConfigMaps+`,
				"validations":[{"expression":"object.data.none == '1'"}]}}`)
			w.make(configurations+"validatingadmissionpolicybindings", `{"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}}`)
			if failure == "Fail" {
				require.Contains(t, w.refused(422, configMaps, configMap("a")), "expression 'object.data.none == '1'' resulted in error: no such key: none")
			} else {
				w.make(configMaps, configMap("a"))
			}
			for _, plural := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
				code, _, _ := w.send("DELETE", configurations+plural+"/p", "")
				require.Equal(t, 200, code)
			}
		}
	})
}

func TestMutatingPolicy(t *testing.T) {
	inWorld(t, only("MutatingAdmissionPolicy"), func(w *world) {
		w.make(configurations+"mutatingadmissionpolicies", `{"metadata":{"name":"m"},"spec":{"reinvocationPolicy":"Never",
			"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]},
			"mutations":[
				{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', imagePullPolicy: 'Never'}]}}"}},
				{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'add', path: '/metadata/labels', value: {'x': 'y'}}]"}}]}}`)
		w.make(configurations+"mutatingadmissionpolicybindings", `{"metadata":{"name":"m"},"spec":{"policyName":"m"}}`)
		a := w.make(pods, pod("a", ""))
		require.Equal(t, "Never", at(t, a, "spec", "containers", 0, "imagePullPolicy"))
		require.Equal(t, "i", at(t, a, "spec", "containers", 0, "image"), "containers are merged by their name")
		require.Equal(t, object.Tree{"x": "y"}, at(t, a, "metadata", "labels"))
	})
}

func TestNothingDecidesAboutItself(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.make(configurations+"validatingadmissionpolicies", `{"metadata":{"name":"all"},"spec":{
			"matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}]},
			"validations":[{"expression":"false"}]}}`)
		w.make(configurations+"validatingadmissionpolicybindings", `{"metadata":{"name":"all"},"spec":{"policyName":"all","validationActions":["Deny"]}}`)
		w.refused(422, configMaps, configMap("a"))
		code, _, _ := w.send("DELETE", configurations+"validatingadmissionpolicybindings/all", "")
		require.Equal(t, 200, code)
		w.make(configMaps, configMap("a"))
	})
}
