package kubeconfig_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// Load and kubectl read the file that Write writes.
func Example() {
	dir, err := os.MkdirTemp("", "leat")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "config")
	err = kubeconfig.Write(path, apiclient.Config{Host: "https://127.0.0.1:6443", BearerToken: apiclient.NewSecret("abc")}, "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, namespace, err := kubeconfig.Load(context.Background(), kubeconfig.Options{Path: path})
	fmt.Println(cfg.Host, cfg.BearerToken.Reveal() == "abc", namespace, err)

	_, _, err = kubeconfig.Load(context.Background(), kubeconfig.Options{Path: path, Context: "prod"})
	fmt.Println(filepath.Base(path), "names contexts:", err != nil)
	// Output:
	// https://127.0.0.1:6443 true shop <nil>
	// config names contexts: true
}
