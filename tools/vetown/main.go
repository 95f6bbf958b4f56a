// Command vetown is a tool for go vet -vettool. It runs go's own vet on the packages of leat, and leaves out their
// dependencies. go vet alone reads these too, to find functions that format like Printf. With a cold cache, that takes
// minutes for Kubernetes. It finds nothing more: vet knows those of fmt, log and testing by name, and recognizes
// neither testify's nor zap's.
//
// Usage: VET=$(go tool -n vet) go vet -vettool=tools/bin/vetown package...
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode()) // vet has said why
		}
		fmt.Fprintf(os.Stderr, "vetown: %v\n", err)
		os.Exit(2)
	}
}

// run answers one call of go vet: for the version, for the flags, or for a package, whose configuration is a file.
func run(args []string) error {
	vet := os.Getenv("VET")
	if vet == "" || len(args) == 0 {
		return errors.New("usage: VET=$(go tool -n vet) go vet -vettool=vetown package")
	}
	last := args[len(args)-1]
	switch {
	case last == "-V=full":
		return version(vet)
	case strings.HasSuffix(last, ".cfg"):
		if left, err := leaveOut(last); left || err != nil {
			return err
		}
	}
	cmd := exec.Command(vet, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// version prints what the cache of go vet depends on.
func version(vet string) error {
	of, err := exec.Command(vet, "-V=full").Output()
	if err != nil {
		return err
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	self, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Printf("vetown version %x\n", sha256.Sum256(append(self, of...)))
	return nil
}

// leaveOut writes no facts for a dependency that vet need not read.
func leaveOut(file string) (bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	var c struct {
		ImportPath, VetxOutput string
		VetxOnly               bool // a dependency
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return false, err
	}
	if !c.VetxOnly || strings.HasPrefix(c.ImportPath, "github.com/leatproject/leat") {
		return false, nil
	}
	return true, os.WriteFile(c.VetxOutput, nil, 0o666)
}
