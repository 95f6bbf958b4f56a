package front

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leatproject/leat/internal/visible"
)

// Programs are the names under which leat-server is another program.
var Programs = []string{"etcd", "kube-apiserver", "kubectl"}

// init runs programs that need no code of Kubernetes before that code initializes itself, which takes as long as all
// the rest of their work. envtest starts four programs for each environment, and only the last etcd needs it. Go
// initializes packages in the order of their paths as soon as their imports are ready, so this package must not import
// net/http, nor a library that is initialized late.
func init() {
	switch args := os.Args[1:]; programName() {
	case "etcd":
		if f, code := ParseEtcd(args, os.Stdout, visible.Writer(os.Stderr)); f == nil {
			os.Exit(code)
		}
	case "kube-apiserver":
		os.Exit(Main(RunAPIServer))
	case "kubectl":
		fmt.Fprintln(os.Stderr, "kubectl: leat-server has no kubectl; install it, and run \"leat-server assets\" again")
		os.Exit(1)
	}
}

// IsEtcd reports whether this program is etcd.
func IsEtcd() bool { return programName() == "etcd" }

func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// Main runs a program until a signal, or until the program that started it has ended. It returns the exit code.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	ctx, cancel := withParent(ctx)
	defer cancel()
	return run(ctx, os.Args[1:], os.Stdout, visible.Writer(os.Stderr))
}
