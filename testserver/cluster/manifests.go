package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/leatproject/leat/api"
)

// manifest is an object to install, and the file that it comes from, if any.
type manifest struct {
	resource api.Resource
	object   metav1.Object
	file     string
}

// String returns a text for errors.
func (m manifest) String() string {
	out := m.resource.Kind + " " + m.object.GetName()
	if m.file != "" {
		out += " of " + m.file
	}
	return out
}

// manifestKind is a kind of objects that files may contain, and a function that returns a new one.
type manifestKind struct {
	resource api.Resource
	empty    func() metav1.Object
}

// manifestReader reads objects of some kinds from files. It ignores the others, because the directories of a project
// also contain, for example, kustomizations.
type manifestReader struct {
	noun  string // of all kinds, for errors
	kinds []manifestKind
}

var (
	crdResource = api.Resource{
		Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
	}
	mutatingResource = api.Resource{
		Group: admissionregistrationv1.GroupName, Version: "v1", Kind: "MutatingWebhookConfiguration",
		Plural: "mutatingwebhookconfigurations",
	}
	validatingResource = api.Resource{
		Group: admissionregistrationv1.GroupName, Version: "v1", Kind: "ValidatingWebhookConfiguration",
		Plural: "validatingwebhookconfigurations",
	}

	definitionReader = manifestReader{"definitions", []manifestKind{
		{crdResource, func() metav1.Object { return &apiextensionsv1.CustomResourceDefinition{} }},
	}}
	webhookReader = manifestReader{"webhook configurations", []manifestKind{
		{mutatingResource, func() metav1.Object { return &admissionregistrationv1.MutatingWebhookConfiguration{} }},
		{validatingResource, func() metav1.Object { return &admissionregistrationv1.ValidatingWebhookConfiguration{} }},
	}}
)

// read reads files and directories. Each path counts once. A path that does not exist is an error or is skipped.
func (r manifestReader) read(paths []string, ignoreMissing bool) ([]manifest, error) {
	var out []manifest
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			continue
		}
		found, err := r.readPath(path)
		if errors.Is(err, fs.ErrNotExist) && ignoreMissing {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// readPath reads a file or the files of a directory.
func (r manifestReader) readPath(path string) ([]manifest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read %s: %w", r.noun, err)
	}
	if !info.IsDir() {
		return r.readFile(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read %s: %w", r.noun, err)
	}
	var out []manifest
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(entry.Name()))) {
			continue
		}
		found, err := r.readFile(filepath.Join(path, entry.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (r manifestReader) readFile(path string) ([]manifest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read %s: %w", r.noun, err)
	}
	var out []manifest
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var document json.RawMessage
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		var m manifest
		if err == nil {
			m, err = r.decode(document)
		}
		if err != nil {
			return nil, fmt.Errorf("cluster: read %s in %s: %w", r.noun, path, err)
		}
		if m.object != nil {
			m.file = path
			out = append(out, m)
		}
	}
}

// decode decodes a document. It returns a manifest without an object if the document is of another kind.
func (r manifestReader) decode(document []byte) (manifest, error) {
	var t metav1.TypeMeta
	if err := json.Unmarshal(document, &t); err != nil {
		return manifest{}, err
	}
	for _, kind := range r.kinds {
		if t.Kind != kind.resource.Kind {
			continue
		}
		if want := kind.resource.GroupVersion().String(); t.APIVersion != want {
			return manifest{}, fmt.Errorf("the apiVersion of a %s must be %s, and not %q", t.Kind, want, t.APIVersion)
		}
		o := kind.empty()
		if err := json.Unmarshal(document, o); err != nil {
			return manifest{}, fmt.Errorf("%s: %w", t.Kind, err)
		}
		return manifest{resource: kind.resource, object: o}, nil
	}
	return manifest{}, nil
}

// lastOfEach returns the last object of each kind and name. As with envtest, an object may come twice: for example,
// from a directory and from one of its files.
func lastOfEach(all []manifest) (out []manifest) {
	id := func(m manifest) string { return m.resource.Kind + "/" + m.object.GetName() }
	last := map[string]int{}
	for i, m := range all {
		last[id(m)] = i
	}
	for i, m := range all {
		if last[id(m)] == i {
			out = append(out, m)
		}
	}
	return out
}

// definitions returns the CustomResourceDefinitions of the options.
func (o Options) definitions() ([]manifest, error) {
	var out []manifest
	for _, d := range o.CRDs {
		out = append(out, manifest{resource: crdResource, object: d})
	}
	found, err := definitionReader.read(o.CRDDirectoryPaths, !o.ErrorIfCRDPathMissing)
	return lastOfEach(append(out, found...)), err
}

// install creates objects.
func (c *Cluster) install(all []manifest) error {
	for _, m := range all {
		if _, err := c.Server.Create(m.resource, m.object); err != nil {
			return fmt.Errorf("cluster: create the %s: %w", m, err)
		}
	}
	return nil
}
