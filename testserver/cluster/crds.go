package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/leatproject/leat/api"
)

var crdResource = api.Resource{
	Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
}

// installCRDs creates the CustomResourceDefinitions of the options.
func (c *Cluster) installCRDs() error {
	all := slices.Clone(c.options.CRDs)
	for _, path := range c.options.CRDDirectoryPaths {
		found, err := readCRDs(path)
		if errors.Is(err, fs.ErrNotExist) && !c.options.ErrorIfCRDPathMissing {
			continue
		}
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	for _, crd := range all {
		if _, err := c.Server.Create(crdResource, crd); err != nil {
			return fmt.Errorf("cluster: create the definition %s: %w", crd.Name, err)
		}
	}
	return nil
}

// readCRDs reads the definitions in a file or in the files of a directory. It ignores objects of other kinds.
func readCRDs(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read definitions: %w", err)
	}
	if !info.IsDir() {
		return readCRDFile(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read definitions: %w", err)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(entry.Name()))) {
			continue
		}
		found, err := readCRDFile(filepath.Join(path, entry.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func readCRDFile(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read definitions: %w", err)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var crd apiextensionsv1.CustomResourceDefinition
		err := documents.Decode(&crd)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cluster: read definitions in %s: %w", path, err)
		}
		if crd.Kind == crdResource.Kind {
			out = append(out, &crd)
		}
	}
}
