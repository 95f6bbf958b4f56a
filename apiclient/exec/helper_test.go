package exec_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/internal/fixture/must"
)

const secret = "s3cr3t-t0ken"

// actVariable makes a plugin of this test binary, which does what it says.
const actVariable = "LEAT_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if act := os.Getenv(actVariable); act != "" {
		os.Exit(acts[act]())
	}
	os.Exit(m.Run())
}

// acts are the plugins of the tests. Each returns its exit code.
var acts = map[string]func() int{
	// report returns a token with the arguments and the environment of the plugin.
	"report": func() int {
		stdin, _ := io.ReadAll(os.Stdin)
		wd, _ := os.Getwd()
		seen, _ := json.Marshal(map[string]any{
			"args": os.Args[1:], "name": os.Args[0], "extra": os.Getenv("EXTRA"), "inherited": os.Getenv("INHERITED"),
			"info": json.RawMessage(os.Getenv("KUBERNETES_EXEC_INFO")), "stdin": string(stdin), "wd": wd,
		})
		fmt.Println(answer(exec.V1, map[string]any{"token": string(seen)}))
		return 0
	},
	"ask": func() int {
		fmt.Fprint(os.Stderr, "password: ")
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println(answer(exec.V1, map[string]any{"token": "for " + strings.TrimSpace(line)}))
		return 0
	},
	"fail": func() int {
		fmt.Println(answer(exec.V1, map[string]any{"token": secret}))
		fmt.Fprintf(os.Stderr, "\nyour session \x1b[31mexpired\n  log in with %s\n", os.Getenv("PASSWORD"))
		return 3
	},
	"flood": func() int {
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat(secret, 1000)); err != nil {
				return 0
			}
		}
	},
	"hang": func() int {
		child := osexec.Command(os.Args[0])
		child.Env = append(os.Environ(), actVariable+"=hold")
		if err := child.Run(); err != nil {
			return 1
		}
		return 0
	},
	// hold keeps a connection to the test open as long as it lives.
	"hold": func() int {
		conn, err := net.Dial("tcp", os.Getenv("EXTRA"))
		if err != nil {
			return 1
		}
		_, _ = io.ReadAll(conn)
		return 0
	},
	// leave succeeds, and its child holds the output open.
	"leave": func() int {
		child := osexec.Command(os.Args[0])
		child.Env = append(os.Environ(), actVariable+"=hold")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println(answer(exec.V1, map[string]any{"token": "left"}))
		return 0
	},
	"die": func() int {
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Kill() != nil {
			return 1
		}
		select {}
	},
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// self is the path of the test binary.
func self(t *testing.T) string {
	t.Helper()
	return must.Get(os.Executable())(t)
}

// options are those of a plugin that does one of the acts.
func options(t *testing.T, act string, env ...exec.Variable) exec.Options {
	t.Helper()
	return exec.Options{
		Command: self(t), APIVersion: exec.V1, InteractiveMode: exec.Never,
		// The race detector makes a process wait for a second before it ends.
		Env: append(env, variable(actVariable, act), variable("GORACE", "atexit_sleep_ms=0")),
	}
}

func variable(name, value string) exec.Variable {
	return exec.Variable{Name: name, Value: apiclient.NewSecret(value)}
}

func newPlugin(t *testing.T, o exec.Options) *exec.Plugin {
	t.Helper()
	return must.Get(exec.New(o))(t)
}

// answer is what a plugin prints.
func answer(version string, status map[string]any) string {
	text, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": version, "status": status})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// token returns an answer with a token that is valid for some time, or forever.
func token(text string, lifetime time.Duration) ([]byte, error) {
	status := map[string]any{"token": text}
	if lifetime != 0 {
		status["expirationTimestamp"] = time.Now().Add(lifetime).UTC().Format(time.RFC3339)
	}
	return []byte(answer(exec.V1, status)), nil
}

// certificate makes a client certificate and its key.
func certificate(t *testing.T, lifetime time.Duration) (certificate, key string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	keyDER := must.Get(x509.MarshalECPrivateKey(private))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

// executable writes a file that may be run: a link to the test binary.
func executable(t *testing.T, path string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Symlink(self(t), path))
	return path
}
