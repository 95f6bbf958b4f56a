package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

func TestCronJobStartsJobs(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Server.Define(testserver.Definition{Resource: cronJobs}) // instead of a CustomResourceDefinition
		p, err := newCronJobs(program.Options{Name: "cronjob", Client: k.Client, Logger: k.Logger})
		require.NoError(t, err)
		k.Start(p.Run)
		c := &CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"}}
		c.Spec.Every.Duration = time.Hour
		c.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "hello:1"}}
		testkit.Create(k, cronJobs, c)

		k.Fail("update", "cronjobs.batch.tutorial.example/status", 1, 409) // another client was faster
		k.Pass(150 * time.Minute)
		require.Len(t, testkit.List[*batchv1.Job](k, jobs, "default"), 2)
		require.Equal(t, 2, testkit.Get[*CronJob](k, cronJobs, api.KeyOf(c)).Status.Active)
	})
}

// TestManifestFitsTheProgram compares the definition with the Go type, and the role with the table of the page.
func TestManifestFitsTheProgram(t *testing.T) {
	text, err := os.ReadFile("manifest.yaml")
	require.NoError(t, err)
	definition, role, found := strings.Cut(string(text), "\n---\n")
	require.True(t, found)
	var d struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			Group, Scope string
			Names        struct{ Kind, Plural string }
			Versions     []struct {
				Name         string
				Subresources map[string]any
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(definition), &d))
	require.Equal(t, cronJobs, api.Resource{
		Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.Kind, Plural: d.Spec.Names.Plural,
		Namespaced: d.Spec.Scope == "Namespaced",
	})
	require.Equal(t, cronJobs.Plural+"."+cronJobs.Group, d.Metadata.Name)
	require.Contains(t, d.Spec.Versions[0].Subresources, "status")

	page, err := os.ReadFile("../../docs/operator.md")
	require.NoError(t, err)
	var r rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict([]byte(role), &r))
	for _, rule := range r.Rules {
		row := "\n| `" + rule.Resources[0] + "` | " + strings.Join(rule.Verbs, ", ")
		require.Contains(t, string(page), row)
	}
}

// TestPageShowsTheProgram holds the code of docs/operator.md to the code here.
func TestPageShowsTheProgram(t *testing.T) {
	var source strings.Builder
	for _, name := range []string{"types.go", "main.go", "reconcile.go", "main_test.go"} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		source.Write(content)
	}
	page, err := os.ReadFile("../../docs/operator.md")
	require.NoError(t, err)
	shown := 0
	for block := range strings.SplitSeq(string(page), "```") {
		if code, ok := strings.CutPrefix(block, "go\n"); ok {
			for line := range strings.Lines(code) {
				require.Contains(t, source.String(), strings.TrimSpace(line))
			}
			shown++
		}
	}
	require.Equal(t, 5, shown)
}
