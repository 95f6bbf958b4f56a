package job

import (
	"context"
	_ "embed" // for the definition
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

const group = "training.leat.example"

// Resource is the resource of TrainingJobs.
var Resource = api.Resource{Group: group, Version: "v1", Kind: "TrainingJob", Plural: "trainingjobs", Namespaced: true}

// DefinitionName is the name of the CustomResourceDefinition.
const DefinitionName = "trainingjobs." + group

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = api.Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
}

// Definition is the CustomResourceDefinition of TrainingJobs, in YAML.
//
//go:embed definition.yaml
var Definition []byte

// ContainerName is the name of the container that trains.
const ContainerName = "tensorflow"

const (
	fieldManager  = "trainingjob"
	mostOfOneType = 1000
)

// Install creates or updates the CustomResourceDefinition. The server serves TrainingJobs some time after Install has
// returned. Errors are those of the server.
func Install(ctx context.Context, c *apiclient.Client) error {
	var intent map[string]any
	if err := yaml.Unmarshal(Definition, &intent); err != nil {
		return fmt.Errorf("job: read the definition: %w", err)
	}
	definitions := apiclient.NewPartial[*metav1.PartialObjectMetadata](c, Definitions, "")
	_, err := definitions.Apply(ctx, api.Key{Name: DefinitionName}, intent, apiclient.ApplyOptions{
		FieldManager: fieldManager, Force: true,
	})
	return err
}
