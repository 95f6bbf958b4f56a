package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
)

// A program lets one plugin run, and no other.
func Example() {
	dir, err := os.MkdirTemp("", "leat")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	script := `#!/bin/sh
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"abc"}}'`
	if err := os.WriteFile(filepath.Join(dir, "login"), []byte(script), 0o700); err != nil {
		fmt.Println(err)
		return
	}
	o := exec.Options{
		Command: "./login", Dir: dir, APIVersion: exec.V1, InteractiveMode: exec.Never,
		Terms: exec.Terms{Policy: exec.Policy{Type: exec.Allowlist, Allowlist: []string{filepath.Join(dir, "login")}}},
	}
	plugin, err := exec.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	credentials, err := plugin.Credentials(context.Background())
	fmt.Println(credentials.Token, credentials.Token.Reveal() == "abc", err)

	_, err = apiclient.New(apiclient.Config{Host: "https://127.0.0.1:6443", Credentials: plugin})
	fmt.Println(err)
	// Output:
	// REDACTED true <nil>
	// <nil>
}
